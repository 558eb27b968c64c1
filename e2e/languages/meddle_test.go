//go:build unix

package languages

import (
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/deployctl/deployctl/e2e/harness"
)

// meddle overwrites an object of the bucket of the stack's URL behind the engine's back, or removes it when there is no
// text.
func meddle(t *testing.T, h *harness.Home, p *harness.Tool, key, text string) {
	t.Helper()
	at, err := url.Parse(p.Outputs(t)["url"].(string))
	harness.Must(t, err)
	bucket := strings.Split(at.Path, "/")[1]
	access := h.S3(t)
	client := s3.New(s3.Options{
		BaseEndpoint: &access.Endpoint, Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(access.AccessKey, access.SecretKey, ""),
	})
	if text == "" {
		_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	} else {
		found, getErr := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
		harness.Must(t, getErr)
		_, err = client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &bucket, Key: &key, Body: strings.NewReader(text), Metadata: found.Metadata,
			ContentType: aws.String("text/html"),
		})
	}
	harness.Must(t, err)
}
