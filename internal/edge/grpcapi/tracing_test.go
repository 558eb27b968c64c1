package grpcapi

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/testkit/collectortest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

func TestACallOfAKnownCallerIsASpanOfTheCallersTrace(t *testing.T) {
	const trace, parent, secret = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "needle-of-an-error"
	var said bytes.Buffer
	collector := collectortest.Start(t)
	traced, err := tracing.Open(tracing.Options{Endpoint: collector.URL, Sample: 1, Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	within := false
	connection := served(t, Config{
		Authority: tokensByText{"viewer": {Token: "viewer", Authority: deployments.Everything()}},
		Log:       slog.New(slog.NewTextHandler(&said, nil)),
	}, func(_ any, s grpc.ServerStream) error {
		within = tracing.Of(s.Context()) != nil
		return deployments.Errorf(deployments.CodeNotFound, "there is no %s", secret)
	}, func(e *edge) { e.tracing = traced })
	for _, token := range []string{"viewer", "guessed"} {
		ctx := metadata.AppendToOutgoingContext(waittest.Context(t), "authorization", "Bearer "+token,
			tracing.Header, "00-"+trace+"-"+parent+"-01")
		_, err := api.NewStacksClient(connection).GetStack(ctx, &api.GetStackRequest{Stack: &api.StackName{
			Organization: "acme", Project: "shop", Stack: "dev"}})
		if err == nil {
			t.Fatalf("%s is answered", token)
		}
	}
	traced.Close(waittest.Context(t))
	spans := collector.Spans()
	collectortest.Check(t, spans, tracing.Table)
	if len(spans) != 1 || !within || spans[0].Name != "deployctl.v1.Stacks/GetStack" || spans[0].Trace != trace ||
		spans[0].Parent != parent || spans[0].Attributes["error.type"] != "NotFound" {
		t.Errorf("the handler is within a span: %t; the spans are %+v", within, spans)
	}
	if text := strings.Join(collector.Texts(), ""); strings.Contains(text, secret) {
		t.Errorf("the text of the error is exported:\n%s", text)
	}
	if n := strings.Count(said.String(), "trace_id="+trace); n != 1 {
		t.Errorf("%d lines of the log have the trace in\n%s", n, &said)
	}
}
