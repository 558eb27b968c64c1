// Package s3 provides buckets, objects and directories of files on any S3 endpoint, as convergent resources:
// deployctl:s3:Bucket, deployctl:s3:Object and the component deployctl:s3:Directory.
//
// What it makes carries a stamp, in the tags of a bucket and the metadata of an object, that says which resource of
// which stack it is. A create that finds its own stamp goes on where an earlier attempt stopped; one that finds the
// stamp of another resource of the same stack takes over (a resource was renamed in the program), and that other one's
// delete then leaves it alone; whatever else exists is refused. So is an update of what another stack has taken over,
// by an import.
package s3

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/deployctl/deployctl/provider"
)

// Config says where S3 is and who calls. What of it is not set, the environment and files decide that the AWS SDK reads
// (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID, …).
type Config struct {
	Endpoint  string `pulumi:"s3Endpoint,optional" doc:"The URL of the S3 endpoint; without it AWS_ENDPOINT_URL_S3, else AWS."`
	Region    string `pulumi:"s3Region,optional" doc:"The region; without it AWS_REGION, else us-east-1."`
	AccessKey string `pulumi:"s3AccessKey,optional" doc:"The ID of the access key; without it AWS_ACCESS_KEY_ID."`
	SecretKey string `pulumi:"s3SecretKey,optional,secret" doc:"The secret of the access key; without it AWS_SECRET_ACCESS_KEY."`
}

// Module is the s3 module. The fallback stands as a whole when the user configures nothing, and is dropped as a whole
// when the user configures anything, so that credentials meant for one endpoint never reach another.
func Module(fallback Config) provider.Module {
	conn := &connection{}
	return provider.Module{
		Config: provider.Configured(func(ctx context.Context, c Config) error {
			if c == (Config{}) {
				c = fallback
			}
			return conn.open(ctx, c)
		}),
		Resources: []provider.Resource{
			provider.NewResource("deployctl:s3:Bucket", &Bucket{conn}),
			provider.NewResource("deployctl:s3:Object", &Object{conn}),
		},
		Components: []provider.Component{provider.NewComponent("deployctl:s3:Directory", &Directory{conn})},
	}
}

// connection is the client that the last Configure made.
type connection struct {
	mu     sync.Mutex
	opened *opened
}

type opened struct {
	client   *s3.Client
	endpoint string // without a slash at the end; empty is AWS
	region   string

	keepsObjects atomic.Bool // an object was read back as it was written
}

const (
	fallbackRegion = "us-east-1"
	maxBackoff     = 300 * time.Millisecond
)

func (c *connection) open(ctx context.Context, cfg Config) error {
	if u, err := url.Parse(cfg.Endpoint); err != nil || cfg.Endpoint != "" && (u.Scheme == "" || u.Host == "") {
		return fmt.Errorf("s3Endpoint %q is not a URL such as http://127.0.0.1:9000", cfg.Endpoint)
	}
	if (cfg.AccessKey == "") != (cfg.SecretKey == "") {
		return errors.New("s3AccessKey and s3SecretKey go together, and only one of them is set")
	}
	base, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	if cfg.Region != "" {
		base.Region = cfg.Region
	}
	if base.Region == "" {
		base.Region = fallbackRegion
	}
	if cfg.AccessKey != "" {
		base.Credentials = credentials.NewStaticCredentialsProvider(cfg.AccessKey, cfg.SecretKey, "")
	}
	client := s3.NewFromConfig(base, func(o *s3.Options) {
		if cfg.Endpoint != "" {
			o.BaseEndpoint = &cfg.Endpoint
		}
		o.UsePathStyle = o.BaseEndpoint != nil
		// Only what passes at once is tried again here; waiting is the engine's, where it shows and survives.
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxBackoff = maxBackoff
			r.Retryables = slices.Insert(r.Retryables, 0, retry.IsErrorRetryable(
				retry.IsErrorRetryableFunc(unlessUnknown)))
		})
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	endpoint := strings.TrimRight(aws.ToString(client.Options().BaseEndpoint), "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = &opened{client: client, endpoint: endpoint, region: base.Region}
	return nil
}

func (c *connection) get() (*opened, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened == nil {
		return nil, errors.New("the provider is not configured yet")
	}
	return c.opened, nil
}

// bucketURL is where a bucket answers: below the endpoint, or on AWS at its own host.
func (o *opened) bucketURL(bucket string) string {
	if o.endpoint == "" {
		return fmt.Sprintf("https://%s.s3.%s.amazonaws.com", bucket, o.region)
	}
	return o.endpoint + "/" + bucket
}

func (o *opened) objectURL(bucket, key string) string {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return o.bucketURL(bucket) + "/" + strings.Join(parts, "/")
}
