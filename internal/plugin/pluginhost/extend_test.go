package pluginhost

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// parameters asks a tiny provider how often it was given a parameter.
func parameters(t *testing.T, p *Provider) float64 {
	t.Helper()
	resp, err := p.Create(t.Context(), creating("count"))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Properties["parameters"].NumberValue()
}

// tinyProvider returns a configured tiny provider of an instance.
func tinyProvider(t *testing.T, h *Host, instance string) *Provider {
	t.Helper()
	p, err := h.Provider(t.Context(), Package{Name: "tiny"}, instance)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Configure(t.Context(), configuration("tiny", nil)); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAProcessIsGivenAnExtensionOnce(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	p := tinyProvider(t, h, "a")
	var loads atomic.Int32
	load := func(context.Context) (apitype.Extension, error) {
		loads.Add(1)
		return apitype.Extension{Name: "gateway", Version: "1.2.3", Value: []byte("x")}, nil
	}
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if err := p.Extend(t.Context(), "e1", load); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := parameters(t, p); n != 1 || loads.Load() != 1 {
		t.Errorf("it was given %v times and loaded %d times", n, loads.Load())
	}
	if err := p.Extend(t.Context(), "e2", load); err != nil || parameters(t, p) != 2 {
		t.Errorf("another extension was given %v times: %v", parameters(t, p), err)
	}
	// The process of another instance knows nothing of it; nor does the one that follows a process that died.
	if other := tinyProvider(t, h, "b"); parameters(t, other) != 0 {
		t.Error("the other process was extended, too")
	}
	_, _ = p.Create(t.Context(), creating("die"))
	<-p.Died()
	next := tinyProvider(t, h, "a")
	if err := next.Extend(t.Context(), "e1", load); err != nil || parameters(t, next) != 1 {
		t.Errorf("the next process was given it %v times: %v", parameters(t, next), err)
	}
}

func TestAnExtensionThatFailsIsTriedAgainByTheNextCall(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	p := tinyProvider(t, h, "a")
	lost := errors.New("the store is away")
	for _, c := range []struct {
		value string
		err   error
		says  string
	}{
		{"", lost, "the store is away"},
		{"refuse", nil, "extending the provider by package gateway 1.2.3"},
		{"other", nil, `extended by package gateway, and says that it was by "other"`},
		{"x", nil, ""},
	} {
		err := p.Extend(t.Context(), "e1", func(context.Context) (apitype.Extension, error) {
			return apitype.Extension{Name: "gateway", Version: "1.2.3", Value: []byte(c.value)}, c.err
		})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.value, err)
		}
	}
}

func TestWhoWaitsForAnExtensionMayLeave(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	p := tinyProvider(t, h, "a")
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan struct{})
	err := p.Extend(ctx, "e1", func(context.Context) (apitype.Extension, error) {
		cancel()
		<-held
		return apitype.Extension{Name: "gateway", Version: "1.2.3", Value: []byte("x")}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("who leaves gets %v", err)
	}
	close(held)
	if err := p.Extend(t.Context(), "e1", nil); err != nil { // it waits for the attempt that is under way
		t.Errorf("who stays gets %v", err)
	}
}
