// Package tracing makes spans (OpenTelemetry) and exports them over OTLP. It is the only package that knows the
// libraries of OpenTelemetry.
//
// Nothing waits for the export, and what does not fit its queue is dropped and counted. Names and attributes of spans
// are in Table: they are few, and no attribute has a value or a text of a program, a provider or an error.
package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Options say where spans go, and which.
type Options struct {
	// Endpoint is the collector: http://HOST:PORT, or https://HOST:PORT for TLS.
	Endpoint string
	// Headers go with each export, such as a token.
	Headers map[string]string
	// Authorities certify the collector; nil: those of the system.
	Authorities *x509.CertPool
	// Sample is how many of the traces that begin here are exported, from 0 to 1. A trace that has begun elsewhere is
	// exported if it is there.
	Sample float64
	// Service names the kind of this process, Instance the process and Version the release.
	Service, Instance, Version string
	// Brief is that of a process that does not repeat an export that fails, because it is about to end.
	Brief bool
	// Failed is called with the errors of the export, at most once a minute; it may be nil.
	Failed func(error)
}

// Tracing makes the spans of a process. A nil one makes none.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	queue    *queue
	conn     *grpc.ClientConn
}

// Bounds of the export: of what a collector answers, of one attempt, and of attempts at the same spans.
const (
	maxAnswer      = 64 << 10
	exportPatience = 10 * time.Second
	exportRepeated = 30 * time.Second
)

// Open begins to export. It connects when there is something to export.
func Open(o Options) (*Tracing, error) {
	address, secure, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if len(o.Headers) > 0 && !secure && !onLoopback(address) {
		return nil, errors.New("headers may hold a token, so they are sent off this machine only with TLS: write " +
			"https://")
	}
	dial := []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithTransportCredentials(insecure.NewCredentials())}
	if secure {
		dial = append(dial, grpc.WithTransportCredentials(credentials.NewTLS(
			&tls.Config{RootCAs: o.Authorities, MinVersion: tls.VersionTLS12})))
	}
	conn, err := grpc.NewClient(address, dial...)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithGRPCConn(conn),
		otlptracegrpc.WithHeaders(o.Headers), otlptracegrpc.WithTimeout(exportPatience),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: !o.Brief, InitialInterval: time.Second,
			MaxInterval: exportPatience, MaxElapsedTime: exportRepeated}))
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	t := open(o, exporter)
	t.conn = conn
	return t, nil
}

// open makes spans for an exporter.
func open(o Options, exporter sdk.SpanExporter) *Tracing {
	q := newQueue(exporter, o.Failed)
	provider := sdk.NewTracerProvider(
		sdk.WithSpanProcessor(q), sdk.WithIDGenerator(ids{}),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Sample))),
		sdk.WithRawSpanLimits(sdk.SpanLimits{AttributeValueLengthLimit: maxText, AttributeCountLimit: maxAttributes,
			LinkCountLimit: maxLinks, AttributePerLinkCountLimit: 1}),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", o.Service), attribute.String("service.instance.id", o.Instance),
			attribute.String("service.version", o.Version))),
	)
	return &Tracing{provider: provider, tracer: provider.Tracer(scope), queue: q}
}

// Bounds of a span.
const (
	maxText       = 256
	maxAttributes = 16
	maxLinks      = 4
)

// scope is the name of the instrumentation.
const scope = "github.com/deployctl/deployctl"

// Close exports what is left until ctx ends.
func (t *Tracing) Close(ctx context.Context) {
	if t == nil {
		return
	}
	_ = t.provider.Shutdown(ctx) // the queue has counted what was lost
	if t.conn != nil {
		_ = t.conn.Close()
	}
}

// Counts returns how many spans were exported, dropped because the queue was full, and lost with a failed export.
func (t *Tracing) Counts() (exported, dropped, failed int64) {
	if t == nil {
		return 0, 0, 0
	}
	return t.queue.exported.Load(), t.queue.dropped.Load(), t.queue.failed.Load()
}

// parseEndpoint returns the address of a collector, and whether it is reached with TLS.
func parseEndpoint(text string) (address string, secure bool, err error) {
	u, err := url.Parse(text)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Port() != "" && u.Hostname() != "" &&
		(u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.User == nil {
		return u.Host, u.Scheme == "https", nil
	}
	return "", false, fmt.Errorf("write http://HOST:PORT or https://HOST:PORT, not %q: the address of a collector that "+
		"takes OTLP over gRPC, whose port is mostly 4317", text)
}

func onLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
