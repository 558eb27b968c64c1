// Package collectortest is a collector of traces (OTLP over gRPC) for tests.
package collectortest

import (
	"context"
	"encoding/hex"
	"net"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
)

// Collector keeps what is exported to it.
type Collector struct {
	// URL is its endpoint.
	URL string

	collector.UnimplementedTraceServiceServer
	mu      sync.Mutex
	spans   []Span
	texts   []string
	headers metadata.MD
}

// Span is an exported span. Its ids are in hexadecimal.
type Span struct {
	Trace, ID, Parent, Name string
	Service                 string
	Attributes              map[string]string // numbers in decimal
	Links                   []string          // ids of spans of the same trace
	Failed                  bool
	Began, Ended            uint64
}

// Start serves a collector on loopback until the test ends.
func Start(t testing.TB) *Collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{URL: "http://" + listener.Addr().String()}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }() // ends by Stop
	t.Cleanup(server.Stop)
	return c
}

// Export implements the service.
func (c *Collector) Export(
	ctx context.Context, in *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers, _ = metadata.FromIncomingContext(ctx)
	c.texts = append(c.texts, protojson.Format(in))
	for _, of := range in.GetResourceSpans() {
		service := attributes(of.GetResource().GetAttributes())["service.name"]
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, read(s, service))
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func read(s *traces.Span, service string) Span {
	out := Span{Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Name: s.GetName(), Service: service,
		Attributes: attributes(s.GetAttributes()), Failed: s.GetStatus().GetCode() == traces.Status_STATUS_CODE_ERROR,
		Began: s.GetStartTimeUnixNano(), Ended: s.GetEndTimeUnixNano()}
	for _, link := range s.GetLinks() {
		out.Links = append(out.Links, hex.EncodeToString(link.GetSpanId()))
	}
	return out
}

func attributes(of []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range of {
		out[a.GetKey()] = a.GetValue().GetStringValue()
		if _, number := a.GetValue().GetValue().(*common.AnyValue_IntValue); number {
			out[a.GetKey()] = strconv.FormatInt(a.GetValue().GetIntValue(), 10)
		}
	}
	return out
}

// Spans returns what was exported so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Texts returns every export in full, as JSON.
func (c *Collector) Texts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.texts...)
}

// Headers returns the headers of the last export.
func (c *Collector) Headers() metadata.MD {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers
}

// placeholder is a word of a name in a table that stands for any text.
var placeholder = regexp.MustCompile(`[A-Z]{2,}`)

// Check fails the test if a span has a name that is not in the table, or an attribute that the table does not have for
// it. Words in capitals of a name in the table stand for any text.
func Check[K ~string](t testing.TB, spans []Span, table map[string][]K) {
	t.Helper()
	for _, span := range spans {
		known := false
		for name, keys := range table {
			pattern := placeholder.ReplaceAllString(regexp.QuoteMeta(name), ".+")
			if !regexp.MustCompile("^" + pattern + "$").MatchString(span.Name) {
				continue
			}
			known = true
			for key := range span.Attributes {
				if !slices.Contains(keys, K(key)) {
					t.Errorf("the table has no attribute %s of %s", key, name)
				}
			}
		}
		if !known {
			t.Errorf("the table has no span %s", span.Name)
		}
	}
}

// Of returns the spans of a trace.
func Of(spans []Span, trace string) []Span {
	return slices.DeleteFunc(spans, func(s Span) bool { return s.Trace != trace })
}

// Has reports whether a span has a name.
func Has(spans []Span, name string) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return s.Name == name })
}
