package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc/codes"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/seal"
)

// Temporal says where the cluster is and how to authenticate. Paths are of PEM files.
type Temporal struct {
	Address, Namespace, APIKey string
	TLSCert, TLSKey, CACert    string
	// ServerName is the name in the cluster's certificate, if it differs from the address, as behind a private link.
	ServerName string
}

// redial is the pause between attempts of dial; rareRedial is that between calls of which a cluster admits few.
const redial, rareRedial = 300 * time.Millisecond, 2 * time.Second

// dial connects. It retries until it works, ctx ends, or the cluster returns an error that waiting does not change.
func (t Temporal) dial(ctx context.Context, o client.Options) (client.Client, error) {
	var last error
	for {
		c, err := t.dialOnce(ctx, o)
		if err == nil {
			return c, nil
		}
		if refused := t.refused(err); refused != nil {
			return nil, refused
		}
		if last == nil || ctx.Err() == nil { // else ctx has ended
			last = err
		}
		select {
		case <-ctx.Done():
			return nil, deployments.Errorf(deployments.CodeUnavailable,
				"Temporal at %s cannot be reached: %s; check that it runs, the address (temporal.address), and "+
					"whether it wants TLS (temporal.ca-cert, temporal.tls-cert)",
				t.Address, reason(last))
		case <-time.After(redial):
		}
	}
}

// dialOnce connects, and checks the namespace.
func (t Temporal) dialOnce(ctx context.Context, o client.Options) (client.Client, error) {
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, err
	}
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{
		Namespace: t.Namespace})
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// refused returns an error that says what to do about an answer that waiting does not change; nil for others.
func (t Temporal) refused(err error) error {
	switch serviceerror.ToStatus(err).Code() {
	case codes.NotFound:
		return deployments.Errorf(deployments.CodeInvalid, "there is no namespace %s in Temporal at %s: create it "+
			"with `temporal operator namespace create --address %[2]s --namespace %[1]s --retention 720h`, on Temporal "+
			"Cloud in its console, or name another one (temporal.namespace)",
			t.Namespace, t.Address)
	case codes.Unauthenticated:
		return deployments.Errorf(deployments.CodeUnauthorized,
			"Temporal at %s does not accept the credentials (%s): check temporal.api-key, or temporal.tls-cert and "+
				"temporal.tls-key", t.Address, reason(err))
	case codes.PermissionDenied:
		return deployments.Errorf(deployments.CodeForbidden, "the namespace %s in Temporal at %s may not be used "+
			"with these credentials: %s",
			t.Namespace, t.Address, reason(err))
	}
	return nil
}

// notFound reports whether Temporal does not have what was asked for.
func notFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

// reason returns an error's text without what the SDK and gRPC add.
func reason(err error) string {
	text := err.Error()
	if said := serviceerror.ServiceError(nil); errors.As(err, &said) {
		text = said.Status().Message()
	}
	if _, inner, found := strings.Cut(text, `desc = "`); found {
		text = strings.TrimSuffix(inner, `"`)
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "transport: "), "Error while dialing: ")
}

func (t Temporal) options(c Config, keys *seal.Keyring) (client.Options, error) {
	data := newDataConverter(newCodec(keys, t.Namespace))
	o := client.Options{
		HostPort: t.Address, Namespace: t.Namespace, DataConverter: data, MetricsHandler: c.Metrics,
		FailureConverter: newFailures(data),
	}
	if c.Log != nil {
		o.Logger = log.NewStructuredLogger(slog.New(quiet{c.Log.Handler()}))
	}
	if t.APIKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(t.APIKey)
	}
	// payloads are compressed before they are sealed
	o.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	var err error
	o.ConnectionOptions.TLS, err = t.tls()
	return o, err
}

// tls returns the TLS configuration for an API key, a client certificate or a private authority; nil if none is set.
func (t Temporal) tls() (*tls.Config, error) {
	if (t.TLSCert == "") != (t.TLSKey == "") {
		return nil, deployments.Errorf(deployments.CodeInvalid, "a client certificate for Temporal "+
			"(temporal.tls-cert) and its key (temporal.tls-key) come together")
	}
	if t.APIKey == "" && t.TLSCert == "" && t.CACert == "" {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(t.TLSCert, t.TLSKey)
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid,
				"cannot use the client certificate for Temporal: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	var err error
	if t.CACert != "" {
		out.RootCAs, err = authorities(t.CACert)
	}
	return out, err
}

// authorities reads the certificates of those who certify Temporal.
func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot read Temporal's certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s holds no certificate", file)
	}
	return pool, nil
}
