package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/engine"
)

func TestAnUpdateOfAnUnknownKindFailsAndDeletesNothing(t *testing.T) {
	base := []engine.State{
		{URN: "urn:pulumi:dev::proj::test:x:R::db", Type: "test:x:R", Custom: true, ID: "db-0"},
		{URN: "urn:pulumi:dev::proj::test:x:R::old", Type: "test:x:R", Custom: true, ID: "old-0", Delete: true},
	}
	pending := []engine.PendingOperation{{Kind: "creating", State: base[0]}}
	for _, kind := range []engine.Kind{"", "preview", "restore", "importt", "Destroy"} {
		t.Run("kind "+string(kind), func(t *testing.T) {
			r := engine.New(engine.Goal{Kind: kind, Project: "proj", Stack: "dev"}, base, pending)
			for ready := r.Ready(); !ready.Empty(); ready = r.Ready() {
				told := func(e engine.Emit) bool { return e.Severity != "error" }
				if len(ready.Changes)+len(ready.Start)+len(ready.Replies) > 0 || slices.ContainsFunc(ready.Events, told) {
					t.Errorf("it does %+v", ready)
				}
			}
			result, ended := r.Result()
			if !ended || result.Status != engine.StatusFailed || !strings.Contains(result.Error, string(kind)) {
				t.Errorf("%v %+v", ended, result)
			}
			if states, pending := r.Snapshot(); len(states) != 2 || len(pending) != 1 {
				t.Errorf("%+v %+v", states, pending)
			}
		})
	}
}

// unknownEvent is an event of another version: it embeds one to be an Event at all.
type unknownEvent struct{ engine.ProgramExited }

func TestAnEventThatTheCoreDoesNotKnowFailsTheUpdate(t *testing.T) {
	base := []engine.State{{URN: "urn:pulumi:dev::proj::test:x:R::db", Type: "test:x:R", Custom: true, ID: "db-0"}}
	r := engine.New(engine.Goal{Kind: engine.KindUp, Project: "proj", Stack: "dev"}, base, nil)
	r.Handle(engine.RunStarted{Epoch: 1})
	r.Handle(unknownEvent{})
	r.Handle(engine.ProgramExited{Epoch: 1})
	for ready := r.Ready(); !ready.Empty(); ready = r.Ready() {
		for _, c := range ready.Start {
			if _, ok := c.(engine.Step); ok {
				t.Errorf("it starts %+v", c)
			}
		}
	}
	result, ended := r.Result()
	if !ended || result.Status != engine.StatusFailed || !strings.Contains(result.Error, "unknownEvent") {
		t.Errorf("%v %+v", ended, result)
	}
}

func TestTheSentenceOfAResultNamesTheResourceOfTheFirstError(t *testing.T) {
	const u = "urn:pulumi:dev::proj::test:x:R::db"
	refused := engine.Refused{Epoch: 1, Message: "no such option", Type: "test:x:R", Name: "db"}
	named, root, nobody := refused, refused, refused
	named.Message, nobody.Name, nobody.Type = "the option of "+u, "", ""
	root.Type, root.Name = "pulumi:pulumi:Stack", "proj-dev"
	for want, first := range map[string]engine.Refused{
		"test:x:R db: no such option": refused, "the option of " + u: named, "no such option": root,
		"no  such option": nobody,
	} {
		r := engine.New(engine.Goal{Kind: engine.KindUp, Project: "proj", Stack: "dev"}, nil, nil)
		r.Handle(engine.RunStarted{Epoch: 1})
		r.Handle(first)
		later := refused
		later.Name, later.Message = "later", "another error"
		r.Handle(later)
		r.Handle(engine.ProgramExited{Epoch: 1})
		for ready := r.Ready(); !ready.Empty(); ready = r.Ready() {
		}
		if got, ended := r.Result(); !ended || got.Sentence() != strings.Join(strings.Fields(want), " ") {
			t.Errorf("ended %v: %q", ended, got.Sentence())
		}
	}
}
