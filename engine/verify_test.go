package engine

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

func TestARunThatBreaksAnInvariantStartsNothingMoreAndKeepsWhatItDid(t *testing.T) {
	const resource = "test:x:R"
	named := func(name string) urn.URN { return urn.New("dev", "proj", "", resource, name) }
	for name, broken := range map[string]State{
		"a reference to nothing":     {URN: named("lost"), Dependencies: []urn.URN{named("nowhere")}},
		"no id":                      {URN: named("lost"), Custom: true},
		"a name for the second time": {URN: named("before")},
		"a provider that is not there": {
			URN: named("lost"), Custom: true, ID: "i", Provider: "urn:pulumi:dev::proj::pulumi:providers:test::p::1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Goal{Kind: KindUp, Project: "proj", Stack: "dev", Parallel: 10},
				[]State{{URN: named("before"), Type: resource}}, nil)
			r.Handle(RunStarted{Epoch: 1})
			steps := func() []Step {
				var out []Step
				for ready := r.Ready(); !ready.Empty(); ready = r.Ready() {
					for _, c := range ready.Start {
						if s, ok := c.(Step); ok {
							out = append(out, s)
						}
					}
				}
				return out
			}
			register := func(seq int, name string) {
				r.Handle(Registered{Epoch: 1, Seq: seq, Registration: Registration{Type: resource, Name: name,
					Custom: true}})
			}
			register(1, "first")
			begun := steps()
			if len(begun) != 1 {
				t.Fatalf("%+v", begun)
			}
			broken.Key, broken.Type = "o99", resource
			r.change(Delta{Kind: DeltaPut, Op: 99, State: &broken})
			register(2, "second")
			if more := steps(); len(more) > 0 {
				t.Errorf("it starts %+v", more)
			}
			r.Handle(StepFinished{Op: begun[0].Op, Outcome: OutcomeDone, ID: "made"})
			r.Handle(ProgramExited{Epoch: 1})
			steps()
			result, ended := r.Result()
			if !ended || result.Status != StatusFailed || result.IntegrityError == "" ||
				!strings.Contains(result.Error, "stack import") {
				t.Errorf("%v %+v", ended, result)
			}
			states, pending := r.Snapshot()
			if len(states) != 3 || len(pending) > 0 || states[1].ID != "made" && states[0].ID != "made" {
				t.Errorf("%+v %+v", states, pending)
			}
		})
	}
}
