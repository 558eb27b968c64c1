package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

var fresh = deployments.StackName{Organization: "acme", Project: "web", Stack: "made"}

// stateWith is a deployment of a stack with a resource of some outputs.
func stateWith(name deployments.StackName, outputs string) apitype.UntypedDeployment {
	return apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage(
		`{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"metadata":{},"resources":[{"urn":"urn:pulumi:` + name.Stack + `::web::t:m:T::a",` +
			`"type":"t:m:T","outputs":` + outputs + `}]}`)}
}

func newInside(t *testing.T, stacks ...deployments.StackName) *Store {
	t.Helper()
	s, err := New(&bucket.Memory{}, Options{Master: make([]byte, 32)})
	for _, name := range stacks {
		if err == nil {
			err = s.CreateStack(t.Context(), name, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAStackIsCreatedWithItsStateOrNotAtAll(t *testing.T) {
	broken := errors.New("the connection is lost")
	prod := deployments.StackName{Organization: "acme", Project: "web", Stack: "prod"}
	for name, c := range map[string]struct {
		state     apitype.UntypedDeployment
		meanwhile func(*Store) error // once the stack is there, and before it has its state
		version   int                // that a stack of the name has then; -1: there is none
	}{
		"with a state": {stateWith(fresh, `{}`), func(*Store) error { return nil }, 1},
		"with the state of another stack": {stateWith(prod, `{}`), func(*Store) error {
			t.Error("a stack is created whose state is refused")
			return nil
		}, -1},
		"interrupted": {stateWith(fresh, `{}`), func(*Store) error { return broken }, -1},
		"interrupted when somebody has used it": {stateWith(fresh, `{}`), func(s *Store) error {
			_, err := s.ImportAsIs(t.Context(), Exchange{Stack: fresh}, stateWith(fresh, `{}`))
			return errors.Join(broken, err)
		}, 1},
		"interrupted when another has its name": {stateWith(fresh, `{}`), func(s *Store) error {
			_, err := s.ImportAsIs(t.Context(), Exchange{Stack: prod}, stateWith(prod, `{}`))
			return errors.Join(broken, err, s.RemoveStack(t.Context(), fresh, false), s.RenameStack(t.Context(), prod, fresh))
		}, 2},
		"when another has its name": {stateWith(fresh, `{}`), func(s *Store) error {
			return errors.Join(s.RemoveStack(t.Context(), fresh, false), s.CreateStack(t.Context(), fresh, nil))
		}, 0},
	} {
		s := newInside(t, prod)
		reserve := func(context.Context, deployments.StackName) (int, error) { return 1, c.meanwhile(s) }
		_, err := s.CreateAsIs(t.Context(), Exchange{Stack: fresh, Reserve: reserve}, nil, c.state)
		if (err == nil) != (name == "with a state") {
			t.Errorf("%s: it is answered %v", name, err)
		}
		h, err := s.Head(t.Context(), fresh)
		if absent := deployments.CodeOf(err) == deployments.CodeNotFound; absent != (c.version < 0) ||
			!absent && (err != nil || h.Version != c.version || h.Active != nil) {
			t.Errorf("%s: the head is %+v, %v", name, h, err)
		}
	}
}

func TestARemovalOrARenameUndoesNothingOfAnotherOne(t *testing.T) {
	s := newInside(t, fresh)
	nothing := func(*Head) error { return nil }
	first, err := s.lockStack(t.Context(), fresh, deployments.StackName{}, nothing)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.lockStack(t.Context(), fresh, deployments.StackName{}, nothing)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.unlockStack(t.Context(), fresh, first); err != nil {
		t.Fatal(err)
	}
	if err := s.deleteStack(t.Context(), fresh, first, first.ID); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("a removal that has lost the stack ends with %v", err)
	}
	if h, err := s.Head(t.Context(), fresh); err != nil || !h.holdsLock(second) {
		t.Errorf("the head is %+v, %v", h, err)
	}
	if err := s.deleteStack(t.Context(), fresh, second, second.ID); err != nil {
		t.Error(err)
	}
}
