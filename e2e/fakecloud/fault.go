package fakecloud

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"time"
)

// Action is what a fault does to a request that it matches.
type Action string

const (
	// Delay holds the request for DelayMS.
	Delay Action = "delay"
	// Fail answers with Status, and with RetryAfter when that is set. After the effect, it hides it.
	Fail Action = "fail"
	// Hang never answers: it holds the request until the caller goes away or the fault is lifted.
	Hang Action = "hang"
	// Crash drops the connection without a reply.
	Crash Action = "crash"
	// Hold is a gate: it holds the request until the test opens it, and then stays open for all.
	Hold Action = "gate"
)

// Moment is when, relative to the effect, a fault strikes.
type Moment string

const (
	// Before the effect. What ends the request here ends it without an effect.
	Before Moment = "before"
	// After the effect and before the reply.
	After Moment = "after"
)

// Fault is something that goes wrong, or waits, at a chosen moment of the requests that it matches. Faults that match
// the same moment strike in the order in which they were first set, so that a gate may be followed by a crash.
type Fault struct {
	// Name is the fault's, unique: setting it again replaces it, keeps its place and begins its counts anew.
	Name string `json:"name"`
	Do   Action `json:"do"`
	At   Moment `json:"at"` // "" means Before

	// Op and Kind narrow the fault to an operation and a kind; "" means any.
	Op   Op     `json:"op,omitempty"`
	Kind string `json:"kind,omitempty"`
	// Object is a glob that must match the object's name, its id, or its owner's resource name; "" means any.
	Object string `json:"object,omitempty"`

	// Skip lets that many matching requests pass first; Times then strikes that many, 0 for every one from there on.
	Skip  int `json:"skip,omitempty"`
	Times int `json:"times,omitempty"`
	// Chance strikes only so many of those, from 0 to 1; 0 means all. Which ones Seed decides, whatever their order: of
	// the requests for the same thing every one has its own chance.
	Chance float64 `json:"chance,omitempty"`
	Seed   uint64  `json:"seed,omitempty"`
	// PerSecond, if not 0, strikes only what comes beyond so many in a second: with Fail and 429, a cloud that limits
	// its callers.
	PerSecond int `json:"perSecond,omitempty"`

	DelayMS    int    `json:"delayMs,omitempty"`
	Status     int    `json:"status,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"` // seconds
	Message    string `json:"message,omitempty"`
	// Late lets a request that was held before its effect have it even though its caller has gone meanwhile, as a
	// request does that was already on its way. Without it, an effect needs a caller who is still there.
	Late bool `json:"late,omitempty"`
}

func (f Fault) validate() error {
	if !slices.Contains([]Action{Delay, Fail, Hang, Crash, Hold}, f.Do) {
		return fmt.Errorf("fault %q: unknown action %q", f.Name, f.Do)
	}
	if f.At != Before && f.At != After {
		return fmt.Errorf("fault %q: unknown moment %q", f.Name, f.At)
	}
	if f.Do == Fail && (f.Status < 400 || f.Status > 599) {
		return fmt.Errorf("fault %q: %d is not the status of a failure", f.Name, f.Status)
	}
	if f.Chance < 0 || f.Chance > 1 {
		return fmt.Errorf("fault %q: the chance %v is not between 0 and 1", f.Name, f.Chance)
	}
	if _, err := path.Match(f.Object, ""); err != nil {
		return fmt.Errorf("fault %q: %q: %w", f.Name, f.Object, err)
	}
	return nil
}

func (f Fault) matches(at Moment, r Request) bool {
	if f.At != at || f.Op != "" && f.Op != r.Op || f.Kind != "" && f.Kind != r.Kind {
		return false
	}
	return f.Object == "" || slices.ContainsFunc([]string{r.Name, r.ID, ownerName(r.Owner)}, func(name string) bool {
		ok, err := path.Match(f.Object, name)
		return ok && err == nil
	})
}

// FaultStatus is a fault and what came of it.
type FaultStatus struct {
	Fault
	// Seen counts matching requests, Struck those that it acted on (for a gate: those that it held).
	Seen   int `json:"seen"`
	Struck int `json:"struck"`
	// Held counts the requests that it holds at this moment.
	Held int  `json:"held"`
	Open bool `json:"open,omitempty"`
}

// armed is a fault in place.
type armed struct {
	FaultStatus
	lifted chan struct{}  // closed when a gate opens or the fault is replaced or removed
	asked  map[string]int // requests for the same thing, where chance decides
	second time.Time      // in which passed were let through
	passed int
}

// unlucky draws the lot of a request.
func (a *armed) unlucky(r Request) bool {
	if a.Chance == 0 {
		return true
	}
	thing := fmt.Sprint(r.Op, r.Kind, r.Owner)
	a.asked[thing]++
	sum := fnv.New64a()
	_, _ = fmt.Fprint(sum, a.Name, thing, a.asked[thing])
	return rand.New(rand.NewPCG(a.Seed, sum.Sum64())).Float64() < a.Chance
}

// within tells that a request is among those that a limit lets pass.
func (a *armed) within() bool {
	if a.PerSecond == 0 {
		return false
	}
	if now := time.Now(); now.Sub(a.second) >= time.Second {
		a.second, a.passed = now, 0
	}
	a.passed++
	return a.passed <= a.PerSecond
}

// faults is the set in place. changed is closed and made anew whenever a count changes, for those who wait for a gate.
type faults struct {
	mu      sync.Mutex
	set     []*armed
	changed chan struct{}
}

func newFaults() *faults { return &faults{changed: make(chan struct{})} }

func (fs *faults) put(f Fault) error {
	if f.At == "" {
		f.At = Before
	}
	if err := f.validate(); err != nil {
		return err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	a := &armed{FaultStatus: FaultStatus{Fault: f}, lifted: make(chan struct{}), asked: map[string]int{}}
	if i := fs.index(f.Name); i >= 0 {
		fs.set[i].lift()
		fs.set[i] = a
		return nil
	}
	fs.set = append(fs.set, a)
	return nil
}

// remove lifts one fault, or all when the name is empty.
func (fs *faults) remove(name string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.set = slices.DeleteFunc(fs.set, func(a *armed) bool {
		if name != "" && a.Name != name {
			return false
		}
		a.lift()
		return true
	})
}

// open opens a gate and says whether there is one of that name. Opening an open gate is nothing.
func (fs *faults) open(name string) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	i := fs.index(name)
	if i < 0 {
		return false
	}
	fs.set[i].lift()
	return true
}

func (fs *faults) status() []FaultStatus {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	all := make([]FaultStatus, len(fs.set))
	for i, a := range fs.set {
		all[i] = a.FaultStatus
	}
	return all
}

// await returns once the fault is in place and as wanted, or with the context's error.
func (fs *faults) await(ctx context.Context, name string, wanted func(FaultStatus) bool) error {
	for {
		fs.mu.Lock()
		changed, i := fs.changed, fs.index(name)
		reached := i >= 0 && wanted(fs.set[i].FaultStatus)
		fs.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (fs *faults) index(name string) int {
	return slices.IndexFunc(fs.set, func(a *armed) bool { return a.Name == name })
}

// strike counts a request against every fault that matches it and returns those that act on it now.
func (fs *faults) strike(at Moment, r Request) []*armed {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var acting []*armed
	for _, a := range fs.set {
		if a.Open || !a.matches(at, r) {
			continue
		}
		a.Seen++
		if a.within() {
			continue
		}
		if a.Seen <= a.Skip || a.Times > 0 && a.Struck >= a.Times || !a.unlucky(r) {
			continue
		}
		a.Struck++
		a.Held++
		acting = append(acting, a)
	}
	if acting != nil {
		fs.wake()
	}
	return acting
}

// release counts those off that a request no longer concerns.
func (fs *faults) release(acted []*armed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, a := range acted {
		a.Held--
	}
	fs.wake()
}

// wake lets those look again who wait for a count. The caller holds mu.
func (fs *faults) wake() {
	close(fs.changed)
	fs.changed = make(chan struct{})
}

// lift lets everyone go who is held. The caller holds the set's lock.
func (a *armed) lift() {
	if !a.Open {
		a.Open = true
		close(a.lifted)
	}
}

// ending is how a fault ends a request early.
type ending struct {
	dropped bool // close the connection, say nothing
	reply   *refusal
	retry   int
}

// act does what the fault does and says how the request ends, or nil when it goes on.
func (a *armed) act(ctx context.Context) *ending {
	switch a.Do {
	case Fail:
		return &ending{reply: &refusal{a.Status, "Injected", a.message()}, retry: a.RetryAfter}
	case Crash:
		return &ending{dropped: true}
	}
	var due <-chan time.Time
	if a.Do == Delay {
		timer := time.NewTimer(time.Duration(a.DelayMS) * time.Millisecond)
		defer timer.Stop()
		due = timer.C
	}
	gone := ctx.Done()
	if a.Late {
		gone = nil
	}
	select {
	case <-due:
	case <-a.lifted:
	case <-gone:
		return &ending{dropped: true}
	}
	if a.Do == Hang {
		return &ending{dropped: true}
	}
	return nil
}

func (a *armed) message() string {
	if a.Message != "" {
		return a.Message
	}
	return fmt.Sprintf("fault %q answers %d", a.Name, a.Status)
}
