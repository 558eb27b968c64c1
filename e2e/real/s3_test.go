package real

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/deployctl/deployctl/e2e/harness"
)

// bucketServer is a server of S3.
type bucketServer struct {
	url    string
	client *awss3.Client
}

// onS3 is deployctl:s3, and the server that was given, as http://KEY:SECRET@HOST, or the emulator of AWS.
func onS3(t *testing.T) *subject {
	given := os.Getenv("REAL_S3_ENDPOINT")
	if given == "" {
		given = strings.Replace(emulator(t), "://", "://key:secret@", 1)
	}
	u, err := url.Parse(given)
	harness.Must(t, err)
	key := u.User.Username()
	secret, _ := u.User.Password()
	u.User = nil
	plain := u.String()
	client := awss3.New(awss3.Options{BaseEndpoint: &plain, UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(key, secret, "")})
	return &subject{
		server: &bucketServer{plain, client}, program: s3Program,
		env: []string{"AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=" + secret},
	}
}

func s3Program(s stage) string {
	days, suffix := 7, "a"
	if s.changed {
		days = 14
	}
	if s.replaced {
		suffix = "b"
	}
	text := fmt.Sprintf(`name: real
runtime: yaml
resources:
  server:
    type: pulumi:providers:deployctl
    defaultProvider: true
    properties: {s3Endpoint: "%[1]s", s3Region: us-east-1}
  outside: {type: "deployctl:s3:Bucket", properties: {name: %[2]s-outside, tags: {team: web}}}
  shelf: {type: "deployctl:s3:Bucket", properties: {name: %[2]s-shelf}}
`, s.address, s.prefix)
	for i := range 3 {
		text += fmt.Sprintf(`
  bucket%[2]d:
    type: deployctl:s3:Bucket
    properties: {name: %[1]s-bucket%[2]d-%[4]s, tags: {days: "%[3]d"}}
  first%[2]d:
    type: deployctl:s3:Object
    properties: {bucket: "${bucket%[2]d.name}", key: %[1]s-first%[2]d, content: of %[3]d days}
  second%[2]d:
    type: deployctl:s3:Object
    properties: {bucket: "${shelf.name}", key: %[1]s-second%[2]d, content: of %[3]d days}
`, s.prefix, i, days, suffix)
	}
	return text
}

func (b *bucketServer) proxy(t *testing.T, faults *Faults) string {
	p, err := NewHTTP(b.url, faults)
	harness.Must(t, err)
	t.Cleanup(p.Close)
	return p.URL
}

func (b *bucketServer) objects(ctx context.Context, prefix string) (all []object, err error) {
	buckets, err := b.client.ListBuckets(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, found := range buckets.Buckets {
		name := aws.ToString(found.Name)
		if !strings.HasPrefix(name, prefix+"-") {
			continue
		}
		all = append(all, object{"bucket", name, name})
		content, err := b.client.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: found.Name})
		if err != nil {
			return nil, err
		}
		for _, o := range content.Contents {
			id := name + "/" + aws.ToString(o.Key)
			all = append(all, object{"object", id, id})
		}
	}
	return all, nil
}

func (b *bucketServer) alter(ctx context.Context, prefix string) error {
	bucket := aws.String(prefix + "-outside")
	tags, err := b.client.GetBucketTagging(ctx, &awss3.GetBucketTaggingInput{Bucket: bucket})
	if err != nil {
		return err
	}
	for i := range tags.TagSet {
		if aws.ToString(tags.TagSet[i].Key) == "team" {
			tags.TagSet[i].Value = aws.String("somebody else")
		}
	}
	_, err = b.client.PutBucketTagging(ctx, &awss3.PutBucketTaggingInput{Bucket: bucket,
		Tagging: &types.Tagging{TagSet: tags.TagSet}})
	return err
}
