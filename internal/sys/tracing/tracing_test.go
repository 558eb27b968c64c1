package tracing

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/deployctl/deployctl/internal/testkit/collectortest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

const someTrace, someSpan = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

// inMemory makes spans for a test alone.
func inMemory(t *testing.T, sample float64) (*Tracing, func() tracetest.SpanStubs) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	kept := &keeping{InMemoryExporter: exporter}
	traced := open(Options{Sample: sample, Service: "test"}, kept)
	return traced, func() tracetest.SpanStubs {
		traced.Close(waittest.Context(t))
		return exporter.GetSpans()
	}
}

// keeping is an exporter whose shutdown forgets nothing.
type keeping struct{ *tracetest.InMemoryExporter }

func (keeping) Shutdown(context.Context) error { return nil }

func TestWithoutACollectorNothingIsMade(t *testing.T) {
	var none *Tracing
	ctx, span := none.Start(t.Context(), "step", Internal)
	span.Set(Count.Int(1))
	span.Follows("00-" + someTrace + "-" + someSpan + "-01")
	span.EndRPC(nil)
	_, child := Child(ctx, "call", Client)
	child.End("")
	none.Add(Whole{})
	none.Close(ctx)
	if ctx != t.Context() || span != nil || child != nil || Place(ctx) != "" || span.TraceID() != "" {
		t.Error("something is made")
	}
}

func TestATraceThatHasBegunElsewhereIsExportedIfItIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		caller string
		sample float64
		made   int
	}{
		"begun here, all of them":  {"", 1, 1},
		"begun here, none of them": {"", 0, 0},
		"begun elsewhere":          {"00-" + someTrace + "-" + someSpan + "-01", 0, 1},
		"not exported elsewhere":   {"00-" + someTrace + "-" + someSpan + "-00", 1, 0},
		"from nonsense":            {"00-nonsense", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			traced, spans := inMemory(t, c.sample)
			ctx, span := traced.Start(At(t.Context(), c.caller), "call", Server)
			place := Place(ctx)
			span.End("")
			if got := spans(); len(got) != c.made || (place != "") != (c.made > 0) {
				t.Errorf("%d spans are exported, and its place is %q", len(got), place)
			}
		})
	}
}

func TestProcessesAgreeOnTheIdsOfWhatIsOfTheSame(t *testing.T) {
	const place = "00-" + someTrace + "-" + someSpan + "-01"
	update := Within(place, "update", "acme/shop/prod/1")
	if update == "" || update != Within(place, "update", "acme/shop/prod/1") ||
		update == Within(place, "update", "acme/shop/prod/2") || ID(update) != someTrace ||
		Within("", "update") != "" || Within("nonsense", "update") != "" {
		t.Fatalf("the place is %q", update)
	}
	traced, spans := inMemory(t, 1)
	ctx, span := traced.StartAs(At(t.Context(), place), update, "update", Internal)
	_, child := Child(ctx, "step", Internal)
	child.End("NotDone")
	span.End("")
	begun := time.Now().Add(-time.Hour)
	traced.Add(Whole{As: Within(place, "claim", "2"), In: update, Name: "claim", Begun: begun,
		Ended: begun.Add(time.Second), After: Within(place, "claim", "1")})
	made := map[string]tracetest.SpanStub{}
	for _, s := range spans() {
		made[s.Name] = s
	}
	if placeOf(made["update"].SpanContext) != update || made["update"].Parent.SpanID().String() != someSpan {
		t.Errorf("the update is %v in %v", made["update"].SpanContext, made["update"].Parent)
	}
	if s := made["step"]; s.Parent.SpanID() != made["update"].SpanContext.SpanID() ||
		s.SpanContext.SpanID() == made["update"].SpanContext.SpanID() || s.Status.Description != "" {
		t.Errorf("the step is %v in %v: %v", s.SpanContext, s.Parent, s.Status)
	}
	if s := made["claim"]; len(s.Links) != 1 || placeOf(s.Links[0].SpanContext) != Within(place, "claim", "1") ||
		!s.StartTime.Equal(begun) || s.Parent.SpanID() != made["update"].SpanContext.SpanID() {
		t.Errorf("the claim is %+v", s)
	}
}

// slow is a collector that does not answer until the export is given up.
type slow struct{ called chan int }

func (s *slow) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	s.called <- len(spans)
	<-ctx.Done()
	return ctx.Err()
}
func (*slow) Shutdown(context.Context) error { return nil }

func TestNobodyWaitsForACollectorThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporter := &slow{make(chan int, 10)}
		var told []error
		traced := open(Options{Sample: 1, Failed: func(err error) { told = append(told, err) }}, exporter)
		begun := time.Now()
		for range atOnce + queued + 100 {
			_, span := traced.Start(t.Context(), "step", Internal)
			span.End("")
			if len(exporter.called) == 0 {
				synctest.Wait() // until the first group is being exported
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the spans took %s", took)
		}
		if _, dropped, _ := traced.Counts(); dropped != 100 {
			t.Errorf("%d are dropped", dropped)
		}
		closing, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		traced.Close(closing)
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the end took %s", took)
		}
		synctest.Wait()
		if exported, dropped, failed := traced.Counts(); exported != 0 || dropped+failed != atOnce+queued+100 ||
			len(told) != 1 {
			t.Errorf("%d are exported, %d dropped, %d lost: %v", exported, dropped, failed, told)
		}
	})
}

// refusing is a collector that refuses everything.
type refusing struct{ slow }

func (*refusing) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	return errors.New(strings.Repeat("refused ", 1000))
}

func TestErrorsOfTheExportAreToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		traced := open(Options{Sample: 1, Failed: func(err error) {
			if told++; len(err.Error()) > 2*maxText {
				t.Errorf("%d bytes are told", len(err.Error()))
			}
		}}, &refusing{})
		for range 90 {
			_, span := traced.Start(t.Context(), "step", Internal)
			span.End("")
			time.Sleep(every)
		}
		traced.Close(t.Context())
		if _, _, failed := traced.Counts(); failed != 90 || told < 2 || told > 4 {
			t.Errorf("%d are lost, and it is told %d times", failed, told)
		}
	})
}

func TestSpansReachACollectorWithItsHeaders(t *testing.T) {
	collector := collectortest.Start(t)
	traced, err := Open(Options{Endpoint: collector.URL, Headers: map[string]string{"authorization": "Bearer it"},
		Sample: 1, Service: "test", Instance: "here", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	_, span := traced.Start(t.Context(), "step create", Internal, ResourceName.Of(strings.Repeat("n", 1000)),
		Attempt.Int(2))
	span.End("NotDone")
	traced.Close(waittest.Context(t))
	spans := collector.Spans()
	if len(spans) != 1 || spans[0].Name != "step create" || spans[0].Service != "test" || !spans[0].Failed ||
		spans[0].Attributes["error.type"] != "NotDone" || spans[0].Attributes["deployctl.attempt"] != "2" ||
		len(spans[0].Attributes["deployctl.resource.name"]) != maxText {
		t.Errorf("the collector has %+v", spans)
	}
	if said := collector.Headers().Get("authorization"); !slices.Equal(said, []string{"Bearer it"}) {
		t.Errorf("the header is %v", said)
	}
}

func TestAnEndpointIsAURLAndHeadersGoOffTheMachineWithTLSOnly(t *testing.T) {
	for endpoint, good := range map[string]bool{
		"http://127.0.0.1:4317": true, "https://collector.internal:4317/": true, "http://[::1]:4317": true,
		"collector:4317": false, "http://collector": false, "grpc://collector:4317": false, "http://u:p@c:4317": false,
		"http://c:4317/v1/traces": false, "http://collector.internal:4317": false,
	} {
		traced, err := Open(Options{Endpoint: endpoint, Headers: map[string]string{"token": "it"}})
		traced.Close(waittest.Context(t))
		if (err == nil) != good {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// listed is a row of the page's table: a span, its process and its attributes.
var listed = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:client|serve|worker|both)[^|]* \\| [^|]* \\| ([^|]*) \\|$")

func TestThePageOfObservabilityListsEverySpanWithItsAttributes(t *testing.T) {
	page, err := os.ReadFile("../../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Traces\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var told, made []string
	for phrase, keys := range map[string][]Key{"of an update": ofUpdate, "of an activity": ofActivity,
		"of a call": ofRPC} {
		text := ""
		for _, key := range keys {
			text += "`" + string(key) + "`, "
		}
		section = strings.ReplaceAll(section, phrase+" |", strings.TrimSuffix(text, ", ")+" |")
		if !strings.Contains(section, "*"+phrase+"*") {
			t.Errorf("the page does not explain %s", phrase)
		}
	}
	section = strings.ReplaceAll(section, " if it never begins", "")
	for _, row := range listed.FindAllStringSubmatch(section, -1) {
		keys := strings.FieldsFunc(row[2], func(r rune) bool { return strings.ContainsRune("`, ", r) })
		slices.Sort(keys)
		told = append(told, row[1]+": "+strings.Join(keys, " "))
	}
	for name, attributes := range Table {
		var keys []string
		for _, key := range attributes {
			keys = append(keys, string(key))
		}
		slices.Sort(keys)
		made = append(made, name+": "+strings.Join(keys, " "))
	}
	slices.Sort(told)
	slices.Sort(made)
	if !slices.Equal(told, made) {
		t.Errorf("the page lists\n%s\nand there are\n%s", strings.Join(told, "\n"), strings.Join(made, "\n"))
	}
}
