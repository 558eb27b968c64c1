package engine

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Refused says that the program's host refused something that the program asked for: a registration with an option that
// is not supported, a feature, a callback. The program may ignore the refusal, so the update fails by itself: nothing
// is deleted at its end, not even with ContinueOnError. The host has answered the program; there is no Reply.
type Refused struct {
	Epoch int `json:"epoch"`
	// Message says what was refused and what to do about it; it becomes a diagnostic and the error of the update.
	Message string `json:"message"`
	// Type, Name, Parent and Aliases are those of the registration; empty when it was something else.
	Type    tokens.Type `json:"type,omitempty"`
	Name    string      `json:"name,omitempty"`
	Parent  urn.URN     `json:"parent,omitempty"`
	Aliases []Alias     `json:"aliases,omitempty"`
}

func (Refused) event() {}

// refused fails the update. The stored resource that a refused registration means is not deleted for another's
// replacement either. A refusal that is repeated counts again, which changes nothing: it only matters whether there was
// one.
func (r *Run) refused(ev Refused) {
	if ev.Epoch != r.Epoch || r.Phase == phaseEnded {
		return
	}
	r.Refusals++
	var about urn.URN
	if ev.Name != "" {
		reg := Registration{Type: ev.Type, Name: ev.Name, Parent: ev.Parent, Aliases: ev.Aliases}
		about = r.urnOf(reg)
		r.want(about, reg)
	}
	if !r.Stopped {
		r.diagnose("error", about, "%s", ev.Message)
	}
	r.fail(ev.Message)
}

// want keeps every stored resource that a registration which failed or was refused may mean: the program wants it, so
// it is not deleted in this update.
//
// The mark holds for the epoch. Refusals count for the whole update, so a later epoch does not delete either.
func (r *Run) want(u urn.URN, g Registration) {
	for _, name := range append([]urn.URN{u}, r.aliasesOf(u, g)...) {
		if r.snap.Live(name) != nil {
			r.mark(name).Wanted = true
		}
	}
}

// wants reports that a stored URN belongs to a resource that the program wants and that could not be registered.
func (r *Run) wants(u urn.URN) bool {
	return r.marked(u).Wanted || r.marked(r.current(u)).Wanted
}
