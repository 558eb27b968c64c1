package monitor

import (
	"context"
	"errors"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

func TestAnInvokeThatIsCancelledDoesNotWaitForItsDependencies(t *testing.T) {
	r := newRegistry()
	component := urn.New("dev", "test", "", "pkg:index:Component", "open")
	r.byURN[component] = registered{}
	r.open[component] = 1 // as during its own construction
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.allExist(ctx, []urn.URN{component})
		done <- err
	}()
	cancel()
	if err := waittest.For(t, "the invoke ends", done); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
