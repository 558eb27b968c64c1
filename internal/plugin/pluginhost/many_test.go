package pluginhost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// TestAnUpdateHasSoManyProvidersAtMost has providers of this process, which are counted as processes are.
func TestAnUpdateHasSoManyProvidersAtMost(t *testing.T) {
	h := open(t, Options{Builtin: map[string]func() pulumirpc.ResourceProviderServer{
		"tiny": func() pulumirpc.ResourceProviderServer { return &pulumirpc.UnimplementedResourceProviderServer{} }}})
	if h.mostAlive != 256 || h.mostStarted != 1024 {
		t.Errorf("it may have %d providers, and start %d", h.mostAlive, h.mostStarted)
	}
	h.mostAlive, h.mostStarted = 5, 8 // as if fewer were possible
	start := func(instance int) (*Provider, error) {
		return h.Provider(t.Context(), Package{Name: "tiny"}, fmt.Sprint(instance))
	}
	started := map[int]*Provider{}
	for n := range h.mostAlive {
		p, err := start(n)
		if err != nil {
			t.Fatalf("provider %d: %v", n, err)
		}
		started[n] = p
	}
	if _, err := start(h.mostAlive); err == nil || !strings.Contains(err.Error(), "5 providers of this update run "+
		"already, and more are not possible") {
		t.Errorf("one more is answered %v", err)
	}
	if again, err := start(3); err != nil || again != started[3] {
		t.Errorf("one that runs is answered %v", err)
	}
	end := func(n int) {
		h.mu.Lock()
		alive := h.alive
		h.mu.Unlock()
		started[n].end.stop(0)
		waittest.Until(t, "the end of a provider", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.alive < alive
		})
	}
	for n := h.mostAlive; n < h.mostStarted; n++ { // each in the place of another one
		end(0)
		p, err := start(0)
		if err != nil {
			t.Fatalf("start %d: %v", n, err)
		}
		started[0] = p
	}
	end(0)
	if _, err := start(0); err == nil || !strings.Contains(err.Error(), "has started providers 8 times already") {
		t.Errorf("one more start is answered %v", err)
	}
}
