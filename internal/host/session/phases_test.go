package session

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

func TestAPhaseIsToldOnceItLastsAndWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		p := &phases{tell: func(phase deployments.Phase) { told = append(told, phase.Text) }}
		p.begin("short")()
		installing := p.begin("installing")
		time.Sleep(phaseDelay / 2)
		starting := p.begin("starting")
		time.Sleep(2 * phaseDelay)
		synctest.Wait()
		installing()
		starting()
		starting()
		if want := []string{"installing", "starting", ""}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
