package monitor

import (
	"context"
	"errors"
	"testing"

	"github.com/deployctl/deployctl/engine"
)

// TestAHookIsWaitedForOnlyWhereItMayStillBeRegistered looks for a hook in the starts of a program.
func TestAHookIsWaitedForOnlyWhereItMayStillBeRegistered(t *testing.T) {
	var h Hooks
	command := engine.Hook{Name: "tell", Point: engine.AfterCreate}
	found := make(chan error, 1)
	find := func(ctx context.Context) {
		go func() {
			_, err := h.Find(ctx, command)
			found <- err
		}()
	}
	first := h.begin(1, nil)
	if _, err := h.Find(t.Context(), command); !errors.Is(err, ErrUnregisteredHook) {
		t.Errorf("in the first start of the program: %v", err)
	}
	h.end(first)

	find(t.Context()) // while no program runs
	second := h.begin(2, nil)
	if err := h.register(second.errors, "tell", &Hook{program: second}); err != nil {
		t.Fatal(err) // an error hook, which is another one
	}
	if err := h.register(second.steps, "tell", &Hook{program: second}); err != nil {
		t.Fatal(err)
	}
	if err := <-found; err != nil {
		t.Errorf("once it is registered: %v", err)
	}
	if err := h.register(second.steps, "tell", &Hook{program: second}); err == nil {
		t.Error("a second hook of the same name is accepted")
	}

	command.Name = "another"
	find(t.Context())
	if !h.seal(second) {
		t.Error("the program is said to have no hooks")
	}
	if err := <-found; !errors.Is(err, ErrUnregisteredHook) {
		t.Errorf("once the program registers no more: %v", err)
	}

	h.end(second)
	ctx, cancel := context.WithCancel(t.Context())
	find(ctx)
	cancel()
	if err := <-found; !errors.Is(err, context.Canceled) {
		t.Errorf("once nobody wants it any more: %v", err)
	}
}
