// Package temporal provides namespaces, search attributes, schedules and Nexus endpoints of a Temporal server, as
// convergent resources.
//
// What is there is read first and compared with what is declared. A mark says whose it is: in the data of a namespace,
// in the memo of a schedule's action and in the metadata of an endpoint's description. A search attribute has no room
// for one: its name and its type are all that it is, so to declare it twice makes no second one and changes nothing.
package temporal

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/provider"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// Config is where the server is and who calls.
type Config struct {
	Address    string `pulumi:"temporalAddress,optional" doc:"The server's frontend, host:port."`
	Namespace  string `pulumi:"temporalNamespace,optional" doc:"The namespace of schedules and search attributes that name none."`
	TLS        bool   `pulumi:"temporalTLS,optional" doc:"Whether to connect by TLS; a key, a certificate or an authority asks for it, too."`
	APIKey     string `pulumi:"temporalAPIKey,optional,secret" doc:"The API key that is sent with each call."`
	CACert     string `pulumi:"temporalCACert,optional" doc:"The authority of the server's certificate, as PEM text; without it, the public ones."`
	Cert       string `pulumi:"temporalCert,optional" doc:"The client's certificate, as PEM text."`
	Key        string `pulumi:"temporalKey,optional,secret" doc:"The key of the client's certificate, as PEM text."`
	ServerName string `pulumi:"temporalServerName,optional" doc:"The name in the server's certificate, if it is not that of the address."`
}

// Module is the temporal module. It has no server to fall back on: that of the embedded service is the service's own.
func Module() provider.Module {
	conn := &connection{}
	return provider.Module{
		Config: provider.Configured(conn.open),
		Resources: []provider.Resource{
			provider.NewResource("deployctl:temporal:Namespace", &Namespace{conn}),
			provider.NewResource("deployctl:temporal:SearchAttribute", &SearchAttribute{conn}),
			provider.NewResource("deployctl:temporal:Schedule", &Schedule{conn}),
			provider.NewResource("deployctl:temporal:NexusEndpoint", &NexusEndpoint{conn}),
		},
	}
}

// connection is what the last Configure has set.
type connection struct {
	mu     sync.Mutex
	opened *opened
}

type opened struct {
	frontend  workflowservice.WorkflowServiceClient
	operator  operatorservice.OperatorServiceClient
	conn      *grpc.ClientConn // nil if no address is configured
	namespace string
	redactor  *redaction.Redactor // of what is configured
}

// callTimeout bounds a call: the deletion of a namespace is the longest.
const callTimeout = 5 * time.Minute

func (c *connection) open(_ context.Context, cfg Config) error {
	next := &opened{namespace: cfg.Namespace, redactor: redaction.New([]string{cfg.APIKey, cfg.Key})}
	if cfg.Address != "" {
		if err := next.dial(cfg); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil && c.opened.conn != nil {
		_ = c.opened.conn.Close()
	}
	c.opened = next
	return nil
}

// dial prepares the connection, which the first call makes.
func (o *opened) dial(cfg Config) error {
	if _, _, err := net.SplitHostPort(cfg.Address); err != nil {
		return fmt.Errorf("temporalAddress %q is not host:port", cfg.Address)
	}
	transport, err := cfg.transport()
	if err != nil {
		return err
	}
	o.conn, err = grpc.NewClient(cfg.Address, grpc.WithTransportCredentials(transport),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			if cfg.APIKey != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+cfg.APIKey)
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}))
	if err != nil {
		return fmt.Errorf("temporalAddress %q: %w", cfg.Address, err)
	}
	o.frontend = workflowservice.NewWorkflowServiceClient(o.conn)
	o.operator = operatorservice.NewOperatorServiceClient(o.conn)
	return nil
}

// transport is plain text unless something asks for TLS: a key never goes over the wire in plain text.
func (cfg Config) transport() (credentials.TransportCredentials, error) {
	if !cfg.TLS && cfg.APIKey == "" && cfg.CACert == "" && cfg.Cert == "" && cfg.Key == "" && cfg.ServerName == "" {
		return insecure.NewCredentials(), nil
	}
	settings := &tls.Config{ServerName: cfg.ServerName, MinVersion: tls.VersionTLS12}
	if cfg.CACert != "" {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM([]byte(cfg.CACert)) {
			return nil, errors.New("temporalCACert has no certificate in PEM form: give the text, not the name of a file")
		}
	}
	if cfg.Cert != "" || cfg.Key != "" {
		pair, err := tls.X509KeyPair([]byte(cfg.Cert), []byte(cfg.Key))
		if err != nil {
			return nil, errors.New("temporalCert and temporalKey are not a certificate and its key in PEM form: give both, " +
				"as text, not as names of files")
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(settings), nil
}

// get returns the connection.
func (c *connection) get() (*opened, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.opened == nil:
		return nil, errors.New("the provider is not configured yet")
	case c.opened.conn == nil:
		return nil, errNoServer
	}
	return c.opened, nil
}

var errNoServer = errors.New("no Temporal server is configured: set deployctl:temporalAddress to its host:port")

// listed is get for a list: without a server nothing is there.
func (c *connection) listed() (*opened, error) {
	o, err := c.get()
	if errors.Is(err, errNoServer) {
		return nil, nil
	}
	return o, err
}
