package statestore

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
		cfg.Credentials = &searched{CredentialsProvider: cfg.Credentials, search: func(ctx context.Context) (aws.CredentialsProvider, error) {
			again, err := config.LoadDefaultConfig(ctx, load...)
			return again.Credentials, err
		}}
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

// searched are the credentials that the SDK finds. Once they were refused, all of its places are searched again
// before the next call: the SDK renews what expires, and keeps for good what a file or a process gave without an
// expiry. It tells credentials that were never found from those that cannot be renewed now.
type searched struct {
	aws.CredentialsProvider
	search func(context.Context) (aws.CredentialsProvider, error)
	found  atomic.Bool

	mu      sync.Mutex
	refused bool
	last    time.Time // of the searches
}

// searchAgain is how often the places are searched at most while credentials are refused.
const searchAgain = time.Second

// refuse notes that the server did not accept the credentials.
func (s *searched) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// current gives the provider of the credentials, a new one after a refusal.
func (s *searched) current(ctx context.Context) aws.CredentialsProvider {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.refused || time.Since(s.last) < searchAgain {
		return s.CredentialsProvider
	}
	s.last = time.Now()
	if again, err := s.search(ctx); err == nil {
		s.CredentialsProvider, s.refused = again, false
	}
	return s.CredentialsProvider
}

// errNoCredentials: the SDK has found none in any of its places.
var errNoCredentials = errors.New("no credentials")

// Retrieve implements aws.CredentialsProvider.
func (s *searched) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := s.current(ctx).Retrieve(ctx)
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
