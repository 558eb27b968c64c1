package bucket

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
)

// load returns the configuration of the AWS SDK. The SDK's warnings are dropped: every failure is returned as an error.
func (o S3Options) load(ctx context.Context) (aws.Config, error) {
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return aws.Config{}, errors.New("the access key id and the secret access key come together, and one of them " +
			"is not set")
	}
	load := []func(*config.LoadOptions) error{config.WithRegion(o.Region), config.WithLogger(logging.Nop{})}
	if o.AccessKey != "" { // then nobody's files are asked for anything
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(o.AccessKey,
			o.SecretKey, "")), config.WithSharedConfigFiles([]string{}), config.WithSharedCredentialsFiles([]string{}))
	}
	if !o.onAWS() {
		load = append(load, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	file := stateOf(o.SecretKeyFile)
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err == nil {
		cfg.Credentials = &searched{CredentialsProvider: cfg.Credentials, path: o.SecretKeyFile, file: file,
			search: o.searchAgain(load)}
	}
	return cfg, err
}

// searchAgain returns a provider that searches for credentials again, in the place where they were found.
func (o S3Options) searchAgain(
	load []func(*config.LoadOptions) error,
) func(context.Context) (aws.CredentialsProvider, error) {
	return func(ctx context.Context) (aws.CredentialsProvider, error) {
		if o.SecretKeyFile == "" {
			again, err := config.LoadDefaultConfig(ctx, load...)
			return again.Credentials, err
		}
		text, err := os.ReadFile(o.SecretKeyFile)
		if key := strings.TrimSpace(string(text)); err == nil && key != "" {
			return credentials.NewStaticCredentialsProvider(o.AccessKey, key, ""), nil
		}
		return nil, cmp.Or(err, errNoCredentials)
	}
}

// fileState distinguishes contents of a file.
type fileState struct {
	modified time.Time
	size     int64
}

// stateOf returns the state of a file; zero when it cannot be read.
func stateOf(path string) (state fileState) {
	if path == "" {
		return state
	}
	if info, err := os.Stat(path); err == nil {
		state = fileState{info.ModTime(), info.Size()}
	}
	return state
}

// onAWS reports whether the bucket is Amazon's. Only there can the role of a virtual machine give access, so only then
// is the machine's metadata service asked for it, unless AWS_EC2_METADATA_DISABLED is true.
func (o S3Options) onAWS() bool {
	at, err := url.Parse(o.Endpoint)
	return o.Endpoint == "" || err == nil &&
		(strings.HasSuffix(at.Hostname(), ".amazonaws.com") || strings.HasSuffix(at.Hostname(), ".amazonaws.com.cn"))
}

// searched are credentials that the SDK finds, or whose secret is in a file. After they were refused or the file has
// changed, all places are searched again before the next call: the SDK renews credentials that expire, but keeps those
// without an expiry forever. Errors distinguish credentials that were never found from those that cannot be renewed
// now.
type searched struct {
	aws.CredentialsProvider
	search func(context.Context) (aws.CredentialsProvider, error)
	path   string // of the file with the secret, if any
	found  atomic.Bool

	mu      sync.Mutex
	refused bool
	file    fileState // when it was last read
	last    time.Time // time of the last search
}

// searchAgain is the shortest time between two searches while credentials are refused.
const searchAgain = time.Second

// refuse records that the server did not accept the credentials.
func (s *searched) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// current returns the provider of the credentials, a new one after a refusal or a change.
func (s *searched) current(ctx context.Context) aws.CredentialsProvider {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := stateOf(s.path)
	if file == s.file && (!s.refused || time.Since(s.last) < searchAgain) {
		return s.CredentialsProvider
	}
	s.last, s.file = time.Now(), file
	if again, err := s.search(ctx); err == nil {
		s.CredentialsProvider, s.refused = again, false
	}
	return s.CredentialsProvider
}

// errNoCredentials: the SDK has found none.
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
		return c, errors.Join(errRenewalFailed, err)
	}
	return c, errors.Join(errNoCredentials, err)
}

// errRenewalFailed: there were credentials, but their source does not return new ones.
var errRenewalFailed = errors.New("the credentials could not be renewed")

// signer signs requests. The SDK's signer caches a key by the access key alone, for a day, and would not use a new
// secret of the same access key.
type signer struct {
	mu     sync.Mutex
	secret string
	signer *v4.Signer
}

// SignHTTP implements s3.HTTPSignerV4.
func (s *signer) SignHTTP(
	ctx context.Context, c aws.Credentials, r *http.Request, payload, service, region string, at time.Time,
	options ...func(*v4.SignerOptions),
) error {
	return s.of(c.SecretAccessKey).SignHTTP(ctx, c, r, payload, service, region, at, options...)
}

func (s *signer) of(secret string) *v4.Signer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signer == nil || s.secret != secret {
		// S3 requires this
		s.secret, s.signer = secret, v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	}
	return s.signer
}
