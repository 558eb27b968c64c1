// Package real plays deployctl with providers that people use, against servers that people use, and a proxy between
// them at which answers get lost. `make test-real` plays it; what each part needs, and how other plugins and servers are
// given to it, is in docs/durability.md.
package real

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"sync"
)

// Kind is what goes wrong with a call that changes something on the server.
type Kind string

// The kinds. Everything but Refused happens after the effect.
const (
	Fine          Kind = ""
	Refused       Kind = "refused"        // the connection is cut before the server gets the call
	Cut           Kind = "cut"            // it is cut before the provider gets the answer
	Error         Kind = "error"          // the provider gets an error of the server's kind instead of the answer
	Late          Kind = "late"           // the answer comes late
	PluginKilled  Kind = "plugin killed"  // the answer is lost with the provider
	ServiceKilled Kind = "service killed" // and with the service
	share              = 3                // of so many calls, something goes wrong with one
	seedOfFaults       = 0x7265616c       // apart from those of other random choices
)

// Faults decides by a seed with which calls something goes wrong: with each at most once, so that it succeeds when it
// is repeated. At most one kill happens at a time.
type Faults struct {
	// Kill kills a plugin, or the service. It returns when that is dead.
	Kill func(Kind)

	seed   uint64
	kinds  []Kind
	mu     sync.Mutex
	on     bool
	killed bool
	met    map[string]bool
	struck map[Kind]int
}

// NewFaults has nothing go wrong before Begin.
func NewFaults(seed int, kinds ...Kind) *Faults {
	return &Faults{seed: uint64(seed), kinds: kinds, met: map[string]bool{}, struck: map[Kind]int{}}
}

// Begin has things go wrong, and allows another kill.
func (f *Faults) Begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on, f.killed = true, false
}

// End has nothing go wrong any more.
func (f *Faults) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = false
}

// Struck counts what went wrong.
func (f *Faults) Struck() map[Kind]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.struck)
}

// Of says what goes wrong with a call, which its text tells from others.
func (f *Faults) Of(call string) Kind {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on || f.met[call] {
		return Fine
	}
	f.met[call] = true
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, call)
	r := rand.New(rand.NewPCG(f.seed, h.Sum64()^seedOfFaults))
	if r.IntN(share) > 0 {
		return Fine
	}
	kind := f.kinds[r.IntN(len(f.kinds))]
	if kind == PluginKilled || kind == ServiceKilled {
		if f.killed {
			kind = Cut
		}
		f.killed = true
	}
	f.struck[kind]++
	return kind
}
