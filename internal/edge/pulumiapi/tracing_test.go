package pulumiapi

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/testkit/collectortest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

func TestACallOfAKnownCallerIsASpanOfTheCallersTrace(t *testing.T) {
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	var said bytes.Buffer
	b, collector := newBenchWith(t, slog.New(slog.NewTextHandler(&said, nil))), collectortest.Start(t)
	traced, err := tracing.Open(tracing.Options{Endpoint: collector.URL, Sample: 1, Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	b.config.Tracing = traced
	b.serve()
	at := func(path, authorization string, status int) {
		t.Helper()
		got, _, _ := b.do(http.MethodGet, path, authorization, nil, tracing.Header, "00-"+trace+"-"+parent+"-01")
		if got != status {
			t.Errorf("%s is answered %d", path, got)
		}
	}
	at("/api/stacks/acme/shop/dev", "token viewer", http.StatusOK)
	at("/api/stacks/acme/shop/nothing", "token viewer", http.StatusNotFound)
	at("/api/stacks/acme/shop/dev", "token guessed", http.StatusUnauthorized)
	at("/api/wp-login.php", "", http.StatusNotFound)
	traced.Close(waittest.Context(t))
	spans := collector.Spans()
	collectortest.Check(t, spans, tracing.Table)
	if len(spans) != 2 {
		t.Fatalf("the spans are %+v", spans)
	}
	for n, status := range []string{"200", "404"} {
		s := spans[n]
		if s.Name != "GET /api/stacks/{org}/{project}/{stack}" || s.Trace != trace || s.Parent != parent || s.Failed ||
			s.Attributes["http.response.status_code"] != status || s.Attributes["deployctl.request"] == "" {
			t.Errorf("the span is %+v", s)
		}
	}
	if n := strings.Count(said.String(), "trace_id="+trace); n != 2 {
		t.Errorf("%d lines of the log have the trace in\n%s", n, &said)
	}
}
