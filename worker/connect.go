package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// Config is what a service and its workers stand on.
type Config struct {
	Temporal Temporal
	S3       statestore.S3Options
	// Master is the service's master key, 32 bytes; everything that is stored is sealed with keys made from it.
	Master []byte
	// Patience is how long parts that cannot be reached are waited for, at the start and later.
	Patience time.Duration
	Log      *slog.Logger
	// Metrics takes what the SDK counts; nil for nothing.
	Metrics client.MetricsHandler
}

// Temporal says where the cluster is and how to get in. Paths are of PEM files.
type Temporal struct {
	Address, Namespace, APIKey string
	TLSCert, TLSKey, CACert    string
}

// Connection is a Temporal client that seals everything, and the store beside it.
type Connection struct {
	Client client.Client
	Store  *statestore.Store
	// Failures reads failures, which are sealed too.
	Failures converter.FailureConverter

	config Config
	eager  *eager
}

// Connect opens the store and the client. Parts that do not answer are tried again, quietly, for as long as the
// configuration's patience lasts; then the error says what could not be reached.
func Connect(ctx context.Context, c Config) (*Connection, error) {
	if c.Patience <= 0 {
		c.Patience = 30 * time.Second
	}
	objects, err := statestore.OpenS3(ctx, c.S3)
	if err != nil {
		return nil, err
	}
	store, err := statestore.New(statestore.NewRetry(objects, c.Patience), statestore.Options{Master: c.Master})
	if err != nil {
		return nil, err
	}
	if err := store.Check(ctx); err != nil {
		return nil, err
	}
	options, err := c.Temporal.options(c)
	if err != nil {
		return nil, err
	}
	eager := newEager()
	options.ConnectionOptions.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(eager.intercept)}
	dialing, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	connected, err := dial(dialing, options)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeUnavailable,
			"Temporal at %s (namespace %s) cannot be used; check that it runs and that the address, the namespace and the credentials are right: %w",
			c.Temporal.Address, c.Temporal.Namespace, err)
	}
	return &Connection{Client: connected, Store: store, Failures: options.FailureConverter, config: c, eager: eager}, nil
}

// dial connects, again and again until it works or ctx ends.
func dial(ctx context.Context, o client.Options) (client.Client, error) {
	for {
		c, err := client.DialContext(ctx, o)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// Close ends the client's connections.
func (c *Connection) Close() { c.Client.Close() }

func (t Temporal) options(c Config) (client.Options, error) {
	sealing, err := NewCodec(c.Master)
	if err != nil {
		return client.Options{}, err
	}
	data := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), sealing)
	o := client.Options{
		HostPort: t.Address, Namespace: t.Namespace, DataConverter: data, MetricsHandler: c.Metrics,
		FailureConverter: temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
			DataConverter: data, EncodeCommonAttributes: true,
		}),
	}
	if c.Log != nil {
		o.Logger = log.NewStructuredLogger(c.Log)
	}
	if t.APIKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(t.APIKey)
	}
	o.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{} // payloads are compressed before they are sealed
	o.ConnectionOptions.TLS, err = t.tls()
	return o, err
}

// tls is the configuration for an API key, a client certificate or a private authority; nil for none of them.
func (t Temporal) tls() (*tls.Config, error) {
	if t.APIKey == "" && t.TLSCert == "" && t.CACert == "" {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(t.TLSCert, t.TLSKey)
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "cannot use the client certificate for Temporal: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	if t.CACert != "" {
		pem, err := os.ReadFile(t.CACert)
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "cannot read Temporal's certificate authority: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%s holds no certificate", t.CACert)
		}
	}
	return out, nil
}
