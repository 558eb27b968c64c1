//go:build unix

package pulumicli

import (
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
)

// killsAt has the receiver kill the workers while they deliver the first event whose body has a text. The channel is
// closed when they are gone.
func (r *receiver) killsAt(t *testing.T, c *cluster.Cluster, text string) <-chan struct{} {
	t.Helper()
	killed := make(chan struct{})
	var once sync.Once
	r.arrived = func(e event) {
		if !strings.Contains(e.body, text) {
			return
		}
		once.Do(func() {
			defer close(killed)
			for _, w := range c.Workers {
				if err := w.Kill(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	return killed
}
