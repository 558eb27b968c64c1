package provider_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/deployctl/deployctl/provider"
)

// labels is a service that has the labels of one thing, and counts what it is asked.
type labels struct {
	has, late map[string]string // late: what a read answers before it answers with has
	old       int               // how many reads are late
	drops     bool              // it accepts what it is told, and forgets it
	calls     []string
}

func (l *labels) aspect(want map[string]string) provider.Aspect[map[string]string] {
	return provider.Aspect[map[string]string]{
		Name: "labels", Want: want,
		Observe: func(context.Context) (map[string]string, error) {
			if l.calls = append(l.calls, "get"); l.old > 0 {
				l.old--
				return l.late, nil
			}
			return l.has, nil
		},
		Set: func(_ context.Context, observed map[string]string) error {
			if l.calls = append(l.calls, "put"); !l.drops {
				l.late, l.has = observed, maps.Clone(want)
			}
			return nil
		},
	}
}

func TestAnAspectIsSetWhenItDiffersAndThenOnly(t *testing.T) {
	for name, c := range map[string]struct {
		has, want map[string]string
		calls     []string
	}{
		"it is as declared":     {map[string]string{"a": "b"}, map[string]string{"a": "b"}, []string{"get"}},
		"none is no other":      {nil, map[string]string{}, []string{"get"}},
		"it differs":            {map[string]string{"a": "b"}, map[string]string{"a": "c"}, []string{"get", "put", "get"}},
		"none is declared":      {map[string]string{"a": "b"}, nil, []string{"get", "put", "get"}},
		"there was none so far": {nil, map[string]string{"a": "b"}, []string{"get", "put", "get"}},
	} {
		l := &labels{has: c.has}
		if err := l.aspect(c.want).Sync(t.Context()); err != nil || !slices.Equal(l.calls, c.calls) ||
			!maps.Equal(l.has, c.want) {
			t.Errorf("%s: %v after %v, it has %v", name, err, l.calls, l.has)
		}
	}
}

func TestAnAspectThatIsReadLateIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &labels{}
		a := l.aspect(map[string]string{"a": "b"})
		set := a.Set
		a.Set = func(ctx context.Context, observed map[string]string) error {
			l.old = 3
			return set(ctx, observed)
		}
		if err := a.SyncFrom(t.Context(), nil); err != nil || len(l.calls) != 5 {
			t.Errorf("%v after %v", err, l.calls)
		}
	})
}

func TestAnAspectThatIsNotKeptIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &labels{drops: true}
		err := l.aspect(map[string]string{"a": "b"}).Sync(t.Context())
		if dropped := (*provider.NotKept)(nil); !errors.As(err, &dropped) || dropped.Name != "labels" {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.aspect(map[string]string{"a": "b"}).Sync(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("once it is cancelled: %v", err)
		}
	})
}
