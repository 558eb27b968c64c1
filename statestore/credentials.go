package statestore

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
)

// load reads what the AWS SDK needs. The SDK's own warnings are dropped: every failure is told as an error.
func (o S3Options) load(ctx context.Context) (aws.Config, error) {
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return aws.Config{}, errors.New("the access key id and the secret access key come together, and one of them is not set")
	}
	load := []func(*config.LoadOptions) error{config.WithRegion(o.Region), config.WithLogger(logging.Nop{})}
	if o.AccessKey != "" {
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey, "")))
	}
	if !o.onAWS() {
		load = append(load, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err == nil {
		cfg.Credentials = &searched{CredentialsProvider: cfg.Credentials}
	}
	return cfg, err
}

// onAWS says whether the bucket is Amazon's. Only there can the role of a virtual machine give access, so only then is the
// machine's metadata service asked for it, unless AWS_EC2_METADATA_DISABLED is true.
func (o S3Options) onAWS() bool {
	at, err := url.Parse(o.Endpoint)
	return o.Endpoint == "" || err == nil &&
		(strings.HasSuffix(at.Hostname(), ".amazonaws.com") || strings.HasSuffix(at.Hostname(), ".amazonaws.com.cn"))
}

// searched tells credentials that were never found from those that cannot be renewed now.
type searched struct {
	aws.CredentialsProvider
	found atomic.Bool
}

// errNoCredentials: the SDK has found none in any of its places.
var errNoCredentials = errors.New("no credentials")

// Retrieve implements aws.CredentialsProvider.
func (s *searched) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := s.CredentialsProvider.Retrieve(ctx)
	switch {
	case err == nil:
		s.found.Store(true)
		return c, nil
	case ctx.Err() != nil:
		return c, ctx.Err()
	case s.found.Load():
		return c, errors.Join(errNotRenewed, err)
	}
	return c, errors.Join(errNoCredentials, err)
}

// errNotRenewed: there were credentials, and whoever gives new ones does not answer.
var errNotRenewed = errors.New("the credentials could not be renewed")
