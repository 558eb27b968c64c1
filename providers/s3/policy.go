package s3

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/deployctl/deployctl/provider"
)

// publicReadSid names the one statement of a bucket policy that is ours; all others are left alone.
const publicReadSid = "DeployctlPublicRead"

type policy struct {
	Version   string
	Statement []map[string]any
}

func ours(statement map[string]any) bool { return statement["Sid"] == publicReadSid }

func (o *opened) policy(ctx context.Context, bucket string) (policy, error) {
	p := policy{Version: "2012-10-17"}
	got, err := o.client.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &bucket})
	switch {
	case is(err, "NoSuchBucketPolicy"):
		return p, nil
	case err != nil:
		return p, err
	}
	if err := json.Unmarshal([]byte(aws.ToString(got.Policy)), &p); err != nil {
		return p, fmt.Errorf("not understood: %w", err)
	}
	return p, nil
}

func (o *opened) publicRead(ctx context.Context, bucket string) (bool, error) {
	p, err := o.policy(ctx, bucket)
	return slices.ContainsFunc(p.Statement, ours), err
}

// readableByAnyone is whether anyone may read the objects of a bucket, as an aspect of it: whether our statement is in
// its policy.
func (o *opened) readableByAnyone(bucket string, want bool) provider.Aspect[bool] {
	return provider.Aspect[bool]{
		Name: "policies of buckets", Want: want,
		Observe: func(ctx context.Context) (bool, error) { return o.publicRead(ctx, bucket) },
		Set:     func(ctx context.Context, _ bool) error { return o.setPublicRead(ctx, bucket, want) },
	}
}

// setPublicRead adds our statement to the policy of a bucket, or removes it.
func (o *opened) setPublicRead(ctx context.Context, bucket string, want bool) error {
	p, err := o.policy(ctx, bucket)
	if err != nil {
		return err
	}
	p.Statement = slices.DeleteFunc(p.Statement, ours)
	if want {
		p.Statement = append(p.Statement, map[string]any{
			"Sid": publicReadSid, "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
			"Resource": "arn:aws:s3:::" + bucket + "/*",
		})
		// AWS refuses public policies until this is gone; other servers do not know it. If it matters, the next call
		// says so.
		_, _ = o.client.DeletePublicAccessBlock(ctx, &s3.DeletePublicAccessBlockInput{Bucket: &bucket})
	}
	return o.putPolicy(ctx, bucket, p)
}

// putPolicy sets the policy of a bucket, or removes it when it says nothing.
func (o *opened) putPolicy(ctx context.Context, bucket string, p policy) error {
	if len(p.Statement) == 0 {
		_, err := o.client.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: &bucket})
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = o.client.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: aws.String(string(text))})
	return err
}
