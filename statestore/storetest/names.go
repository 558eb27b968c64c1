package storetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/programs"
	"github.com/deployctl/deployctl/statestore/updates"
)

// climbing are names that a server could take for the way to another object.
var climbing = []string{
	"p-x/../../../prod/updates/1", "..", ".", "", "a/b", "/a", "a//b", "a\x00", "a\nb", "\x1b[2J", `a\b`, "a b",
	strings.Repeat("../", 8) + "tokens/evil",
}

// names checks that no name that a method is given leads to an object of another name.
func names(t *testing.T, f fixture) {
	f.create(t)
	ok(t, f.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(1)}))
	before := f.everything(t)
	for _, name := range climbing {
		update := deployments.UpdateName{StackName: dev, Version: name}
		stack := deployments.StackName{Organization: "organization", Project: "web", Stack: name}
		for method, made := range calls(f, update, stack) {
			if err := made(t.Context()); err == nil {
				t.Errorf("%s takes the name %q", method, name)
			} else if code := deployments.CodeOf(err); code != deployments.CodeInvalid &&
				code != deployments.CodeConflict {
				t.Errorf("%s of %q: %v (%s)", method, name, err, code)
			}
		}
	}
	if after := f.everything(t); !maps.Equal(before, after) {
		t.Errorf("there are objects %q now, and were %q", slices.Sorted(maps.Keys(after)),
			slices.Sorted(maps.Keys(before)))
	}
}

// named gives a name that is not empty, which for a list would mean all.
func named(name string) string {
	if name == "" {
		return " "
	}
	return name
}

// everything gives the tag of each object by its key.
func (f fixture) everything(t *testing.T) map[string]string {
	t.Helper()
	l, err := f.objects.List(t.Context(), bucket.Query{})
	ok(t, err)
	all := map[string]string{}
	for _, key := range l.Keys {
		if all[key], err = f.objects.Tag(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// call is a call of a method of a store.
type call func(context.Context) error

// calls are the methods that take a name that a caller chooses: of an update or a part of one, a stack or a token.
func calls(f fixture, update deployments.UpdateName, stack deployments.StackName) map[string]call {
	name := stack.Stack
	return map[string]call{
		"PutRequest": func(ctx context.Context) error {
			return f.Updates.PutRequest(ctx, update, deployments.UpdateRequest{})
		},
		"Request": func(ctx context.Context) error { _, err := f.Updates.Request(ctx, update); return err },
		"PutInfo": func(ctx context.Context) error {
			return f.Updates.PutInfo(ctx, deployments.UpdateInfo{Update: update})
		},
		"Info":       func(ctx context.Context) error { _, err := f.Updates.Info(ctx, update); return err },
		"SaveDeltas": func(ctx context.Context) error { return f.Updates.SaveDeltas(ctx, update, 1, nil) },
		"LoadDeltas": func(ctx context.Context) error { _, err := f.Updates.LoadDeltas(ctx, update, 0, 1); return err },
		"LastSave":   func(ctx context.Context) error { _, err := f.Updates.LastSave(ctx, update); return err },
		"Answered":   func(ctx context.Context) error { _, err := f.Updates.Answered(ctx, update); return err },
		"PutAside": func(ctx context.Context) error {
			return f.Updates.Spill(ctx, deployments.SpilledPart{Update: update, Name: "a"})
		},
		"TakeUp": func(ctx context.Context) error {
			_, err := f.Updates.LoadSpilled(ctx, deployments.SpilledPart{Update: up(1), Name: name})
			return err
		},
		"AppendEvents": func(ctx context.Context) error {
			return f.Updates.AppendEvents(ctx, updates.Part{Update: up(1), Stream: name}, nil)
		},
		"ReadEvents": func(ctx context.Context) error {
			_, err := f.Updates.ReadEvents(ctx, updates.Part{Update: update, Stream: "run", Number: 1}, 1)
			return err
		},
		"Streams": func(ctx context.Context) error { _, err := f.Updates.Streams(ctx, update); return err },
		"PutOutcome": func(ctx context.Context) error {
			return f.Updates.PutOutcome(ctx, update, 1, engine.StepFinished{Op: 1})
		},
		"Outcome":      func(ctx context.Context) error { _, err := f.Updates.Outcome(ctx, update, 1, 1); return err },
		"PutDeparture": func(ctx context.Context) error { return f.Updates.PutDeparture(ctx, update, name, nil) },
		"Departure": func(ctx context.Context) error {
			_, _, err := f.Updates.Departure(ctx, update, name)
			return err
		},
		"Claim": func(ctx context.Context) error {
			_, err := f.Claim(ctx, statestore.Claimant{Update: update})
			return err
		},
		"CreateStack": func(ctx context.Context) error { return f.CreateStack(ctx, stack, nil) },
		"Stack":       func(ctx context.Context) error { _, err := f.Stack(ctx, stack); return err },
		"RemoveStack": func(ctx context.Context) error { return f.RemoveStack(ctx, stack, true) },
		"RenameStack": func(ctx context.Context) error { return f.RenameStack(ctx, dev, stack) },
		"History":     func(ctx context.Context) error { _, err := f.Updates.History(ctx, stack, 0); return err },
		"ListStacks": func(ctx context.Context) error {
			_, err := f.ListStacks(ctx, "organization", named(name))
			return err
		},
		"CreateToken": func(ctx context.Context) error {
			_, err := f.Access.CreateToken(ctx, deployments.Token{Name: name, Grant: &adminOfAll})
			return err
		},
		"RemoveToken": func(ctx context.Context) error { return f.Access.RemoveToken(ctx, name) },
		"PutFile":     func(ctx context.Context) error { return f.Programs.PutFile(ctx, stack, programs.Digest(nil), nil) },
		"NoteAbsence": func(ctx context.Context) error { return f.Creates.NoteAbsence(ctx, stack, []byte{1}, "x", 1) },
		"PutDrift":    func(ctx context.Context) error { return f.Jobs.PutDrift(ctx, stack, deployments.Drift{}) },
	}
}
