package failure

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/engine"
)

func TestALongTextIsCutWithASentence(t *testing.T) {
	result := engine.StepFinished{Error: strings.Repeat("é", 1<<20)}
	for range 1000 {
		result.Failures = append(result.Failures, engine.CheckFailure{Reason: strings.Repeat("x", 1<<16)})
		result.InitErrors = append(result.InitErrors, strings.Repeat("y", 1<<16))
	}
	cutStep(t.Context(), &result)
	size := len(result.Error)
	for i := range result.Failures {
		size += len(result.Failures[i].Reason)
	}
	for _, e := range result.InitErrors {
		size += len(e)
	}
	if size > 1<<20 {
		t.Errorf("%d bytes are left", size)
	}
	if !strings.Contains(result.Error, "(cut: 32768 of 2097152 bytes are shown; the worker's log has more)") {
		t.Errorf("it ends with %q", result.Error[len(result.Error)-100:])
	}
	if last := result.Failures[len(result.Failures)-1].Reason; last != "and 950 more" {
		t.Errorf("the last failure is %q", last)
	}
}

// TestTheTextsOfAPlanFitIntoItsResult has a provider refuse inputs with more than a result of an activity may have.
func TestTheTextsOfAPlanFitIntoItsResult(t *testing.T) {
	long := strings.Repeat("x", 6<<20)
	planned := engine.Planned{Error: long}
	for range 1000 {
		planned.Failures = append(planned.Failures, engine.CheckFailure{Property: long, Reason: long})
	}
	cutPlan(t.Context(), &planned)
	size := len(planned.Error)
	for _, f := range planned.Failures {
		size += len(f.Property) + len(f.Reason)
	}
	if size > 1<<20 || len(planned.Failures) != maxTexts+1 {
		t.Errorf("%d failures and the error have %d bytes", len(planned.Failures), size)
	}
}
