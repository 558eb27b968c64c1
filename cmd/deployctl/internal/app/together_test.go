package app

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestPartsThatAreAskedToEndFailOnlyForReasonsOfTheirOwn(t *testing.T) {
	full := errors.New("the disk is full")
	for name, c := range map[string]struct {
		asked bool
		part  func(context.Context) error
		want  error
	}{
		"a call is cut off":          {true, cutOff, nil},
		"a part fails while it ends": {true, func(context.Context) error { return full }, full},
		"a call is cut off, and nobody asked": {false, func(context.Context) error { return context.Canceled },
			context.Canceled},
		"a part ends, which ends all the others": {false, func(context.Context) error { return nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.asked {
				cancel()
			}
			err := together(ctx, c.part, func(ctx context.Context) error { <-ctx.Done(); return nil })
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("it ends with %v, not %v", err, c.want)
			}
		})
	}
}

// cutOff is a part with a call that ends with its context.
func cutOff(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("put an object: %w", ctx.Err())
}
