package session

import (
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// phaseDelay is how long a phase lasts before it is shown.
const phaseDelay = time.Second

// phases are what the host of an update is doing that may take long, such as installing packages. Of several at the
// same time the oldest is shown.
type phases struct {
	tell func(deployments.Phase)

	mu     sync.Mutex
	active []*deployments.Phase
	shown  *deployments.Phase
}

// begin records a phase until end is called, which may be called more than once.
func (p *phases) begin(text string) (end func()) {
	phase := &deployments.Phase{Text: text, Since: time.Now().UTC()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = append(p.active, phase)
	timer := time.AfterFunc(phaseDelay, p.show)
	return func() {
		timer.Stop()
		p.mu.Lock()
		p.active = slices.DeleteFunc(p.active, func(other *deployments.Phase) bool { return other == phase })
		shown := p.shown == phase
		p.mu.Unlock()
		if shown {
			p.show()
		}
	}
}

// show reports the oldest active phase, or that there is none.
func (p *phases) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var oldest *deployments.Phase
	if len(p.active) > 0 && time.Since(p.active[0].Since) >= phaseDelay {
		oldest = p.active[0]
	}
	if oldest == p.shown {
		return
	}
	p.shown = oldest
	if oldest == nil {
		p.tell(deployments.Phase{})
		return
	}
	p.tell(*oldest)
}
