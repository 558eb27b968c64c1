package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/testkit/collectortest"
)

// ciTrace and ciSpan are the place of what calls deployctl, such as a job of CI, in its trace.
const ciTrace, ciSpan = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

// TestAnUpdateIsOneTraceFromTheCommandToTheCallsOfProviders plays an update with a collector, and follows each span
// back to the command, and to what has called that.
func TestAnUpdateIsOneTraceFromTheCommandToTheCallsOfProviders(t *testing.T) {
	t.Parallel()
	h, collector := newHome(t), collectortest.Start(t)
	h.env = append(h.env, "DEPLOYCTL_TRACING_ENDPOINT="+collector.URL)
	s := newStage(t, h)
	s.env = append(s.env, "TRACEPARENT=00-"+ciTrace+"-"+ciSpan+"-01")
	s.write(t, "scenario.yaml", strings.Replace(layers, "outputs:", "  - {invoke: found, token: fake:index:lookup, "+
		"args: {name: \"${named-1.id}\"}}\noutputs:", 1))
	s.update(t, "up")
	if history := s.must(t, "stack", "history", "--json"); !strings.Contains(history, `"00-`+ciTrace+"-") {
		t.Errorf("the history does not say the trace:\n%s", history)
	}
	for _, line := range []string{"msg=call ", `msg="update begins"`, `msg="update ended"`} {
		eventually(t, "the log has the trace in a line "+line, func() bool {
			log, err := os.ReadFile(filepath.Join(h.state(), "logs", "service.log"))
			must(t, err)
			return hasLine(string(log), line, "trace_id="+ciTrace)
		})
	}
	var spans []collectortest.Span
	byID := map[string]collectortest.Span{}
	// The client and each part of the service export their spans in their own time.
	eventually(t, "the spans of the update are exported, each with its parent", func() bool {
		spans = collectortest.Of(collector.Spans(), ciTrace)
		for _, span := range spans {
			byID[span.ID] = span
		}
		return collectortest.Has(spans, "update") && collectortest.Has(spans, "commit") &&
			collectortest.Has(spans, "run") && !slices.ContainsFunc(spans, func(span collectortest.Span) bool {
			_, known := byID[span.Parent]
			return !known && span.Parent != ciSpan
		})
	})
	collectortest.Check(t, collector.Spans(), tracing.Table)
	paths := map[string]bool{}
	for _, span := range spans {
		path := span.Name
		for span.Parent != ciSpan {
			parent := byID[span.Parent]
			path, span = parent.Name+" > "+path, parent
		}
		paths[path] = true
	}
	const update = "deployctl up > deployctl.v1.Deployments/Submit > deployctl.v1.Deployments/Submit > stack > update"
	for _, path := range []string{
		update + " > claim", update + " > program > pulumirpc.ResourceProvider/Invoke",
		update + " > step create > pulumirpc.ResourceProvider/Check",
		update + " > step create > pulumirpc.ResourceProvider/Create", update + " > run", update + " > commit",
	} {
		if !paths[path] {
			t.Errorf("no span is %s, but\n%s", path, strings.Join(slices.Sorted(maps.Keys(paths)), "\n"))
		}
	}
}

// hasLine reports whether a line has all the texts.
func hasLine(text string, all ...string) bool {
	for line := range strings.Lines(text) {
		has := true
		for _, one := range all {
			has = has && strings.Contains(line, one)
		}
		if has {
			return true
		}
	}
	return false
}
