package s3

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/stamp"
)

// The tags of a bucket that hold its stamp.
const (
	ownerTag = "deployctl:owner"
	stackTag = "deployctl:stack"
)

func stamped(tags map[string]string, who provider.Identity) map[string]string {
	out := maps.Clone(tags)
	if out == nil {
		out = map[string]string{}
	}
	mark := stamp.For(who)
	out[ownerTag], out[stackTag] = mark.Owner, mark.Stack
	return out
}

func stampIn(tags map[string]string) stamp.Stamp {
	return stamp.Stamp{Owner: tags[ownerTag], Stack: tags[stackTag]}
}

// tags returns the tags of a bucket. A server that does not know tags of buckets has none.
func (o *opened) tags(ctx context.Context, name string) (map[string]string, error) {
	tagging, err := o.client.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &name})
	if is(err, "NoSuchTagSet") || unsupported(err) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	tags := map[string]string{}
	for _, tag := range tagging.TagSet {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return tags, nil
}

func tagSet(tags map[string]string) []types.Tag {
	var set []types.Tag
	for key, value := range tags {
		set = append(set, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	return set
}

// tagsOf are the tags of a bucket, as an aspect of it.
func (o *opened) tagsOf(name string, want map[string]string) provider.Aspect[map[string]string] {
	return provider.Aspect[map[string]string]{
		Name: "tags of buckets", Want: want,
		Observe: func(ctx context.Context) (map[string]string, error) { return o.tags(ctx, name) },
		Set: func(ctx context.Context, _ map[string]string) error {
			_, err := o.client.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: &name,
				Tagging: &types.Tagging{TagSet: tagSet(want)}})
			if is(err, "BucketAlreadyExists", "BucketAlreadyOwnedByYou") {
				return fmt.Errorf("%w, which it takes for a create: %w", &provider.NotKept{Name: "tags of buckets"}, err)
			}
			return err
		},
	}
}

// withoutTags deals with a bucket whose tags could not be set, for the reason err: nobody could tell afterwards
// whose it is. One that was made just now and is empty is removed again, unless the tags may be set later. The error
// says what was done and what to do.
func (o *opened) withoutTags(ctx context.Context, name string, made bool, err error) (_ error, gone bool) {
	if !definite(err) {
		return err, false
	}
	err = fmt.Errorf("%w%s", err, remedyForTags(err))
	if !made {
		return err, false
	}
	if left := o.takeBack(ctx, name); left != nil {
		return fmt.Errorf("%w; the new bucket stays, because it could not be removed again: %w", err, left), false
	}
	return fmt.Errorf("%w; the new bucket was removed again", err), true
}

// takeBack removes a bucket that is empty.
func (o *opened) takeBack(ctx context.Context, name string) error {
	page, err := o.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &name, MaxKeys: aws.Int32(1)})
	if err == nil && len(page.Contents) > 0 {
		err = errors.New("it is not empty")
	}
	if err == nil {
		_, err = o.client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &name})
	}
	if absent(err) {
		return nil
	}
	return err
}

// remedyForTags is what a person can do about a server that does not set the tags of a bucket.
func remedyForTags(err error) string {
	switch {
	case unsupported(err), notKept(err):
		return "; deployctl:s3:Bucket marks in tags whose a bucket is: use an S3 server that keeps the tags of buckets " +
			"(PutBucketTagging, GetBucketTagging), or create the bucket by other means and declare only what is in it"
	case forbidden(err):
		return "; allow the credentials s3:PutBucketTagging and s3:GetBucketTagging: the tags mark whose a bucket is"
	}
	return ""
}
