package engine_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// hostile is an update over states, and of registrations, in which every name is any text.
type hostile struct {
	u, typ, name, parent, provider, alias, target string
	flags                                         uint16
}

// has reports whether a flag is set.
func (h hostile) has(bit int) bool { return h.flags&(1<<bit) != 0 }

func (h hostile) goal() engine.Goal {
	kinds := []engine.Kind{engine.KindUp, engine.KindDestroy, engine.KindRefresh, engine.KindImport,
		engine.Kind(h.name)}
	g := engine.Goal{
		Kind: kinds[int(h.flags>>12)%len(kinds)], Project: "proj", Stack: h.name, Parallel: 4, DryRun: h.has(0),
		Refresh:         h.has(1),
		ContinueOnError: h.has(2), TargetDependents: h.has(3), WaitOnUnknown: h.has(4),
		Defaults: []engine.DefaultProvider{{Package: h.provider}, {Package: "pkg"}},
	}
	if h.has(5) {
		g.Targets, g.Replace = []string{h.target}, []string{h.u}
	}
	if h.has(11) {
		g.Excludes, g.ExcludeDependents = []string{h.alias}, h.has(3)
	}
	return g
}

func (h hostile) base() []engine.State {
	s := engine.State{
		URN: urn.URN(h.u), Type: tokens.Type(h.typ), Custom: h.has(6), ID: h.name, Parent: urn.URN(h.parent),
		Provider:     h.provider,
		Dependencies: []urn.URN{urn.URN(h.alias)}, DeletedWith: urn.URN(h.target),
		ReplaceWith: []urn.URN{urn.URN(h.parent)},
		Aliases:     []urn.URN{urn.URN(h.alias)}, Delete: h.has(7), External: h.has(8), PendingReplacement: h.has(9),
		Protect: h.has(10),
	}
	other := s
	other.URN, other.Delete, other.Provider = urn.URN(h.parent), false, h.u+"::"+h.name
	return []engine.State{s, other, s}
}

func (h hostile) events() []engine.Event {
	g := engine.Registration{
		Type: tokens.Type(h.typ), Name: h.name, Custom: h.has(6), Parent: urn.URN(h.parent), Provider: h.provider,
		Aliases: []engine.Alias{{URN: urn.URN(h.alias)}, {Name: h.alias, Type: h.typ, Parent: urn.URN(h.u)},
			{NoParent: true}},
		DeletedWith: urn.URN(h.target), ImportID: h.target,
	}
	parent := engine.Registration{Type: tokens.Type(h.typ), Name: h.target, Aliases: g.Aliases}
	return []engine.Event{
		engine.RunStarted{Epoch: 1}, engine.Registered{Epoch: 1, Seq: 1, Registration: parent},
		engine.Registered{Epoch: 1, Seq: 2, Registration: g},
		engine.ReadRequested{Epoch: 1, Seq: 3, Type: g.Type, Name: h.alias, ID: h.name, Parent: g.Parent,
			Provider: h.provider},
		engine.OutputsRegistered{Epoch: 1, Seq: 4, URN: g.Parent},
		engine.Refused{Epoch: 1, Type: g.Type, Name: h.name, Parent: g.Parent, Aliases: g.Aliases, Message: h.name},
		engine.Resolved{URN: urn.URN(h.u)}, engine.ProgramExited{Epoch: 1}, engine.Cancelled{},
	}
}

// answer is an outcome of a command, by which every kind of step succeeds or stays unknown.
func (h hostile) answer(c engine.Command) engine.Event {
	switch c := c.(type) {
	case engine.Plan:
		change := []engine.ChangeKind{engine.ChangeNone, engine.ChangeUpdate, engine.ChangeReplace}[int(h.flags>>3)%3]
		return engine.Planned{Op: c.Op, Diff: engine.Diff{Change: change, DeleteBeforeReplace: h.has(11)}}
	case engine.Cascade:
		planned := engine.CascadePlanned{Op: c.Op}
		for _, s := range c.Candidates {
			planned.Members = append(planned.Members, engine.Dependent{Key: s.Key})
		}
		return planned
	case engine.Compare:
		return engine.ProviderDiffed{Op: c.Op, Replace: h.has(11)}
	case engine.Step:
		if h.has(10) {
			return engine.StepFinished{Op: c.Op, Outcome: engine.OutcomeUnknown}
		}
		return engine.StepFinished{Op: c.Op, Outcome: engine.OutcomeDone, ID: h.name}
	case engine.Settle:
		return engine.StepFinished{Op: c.Step.Op, Outcome: engine.OutcomeUndecidable}
	}
	return nil
}

// FuzzRun plays updates in which URNs, types and names are any text: no event panics, and everything comes to an end.
func FuzzRun(f *testing.F) {
	const resource = "urn:pulumi:dev::proj::test:x:R::"
	for i, h := range []hostile{
		{resource + "db", "test:x:R", "db", resource + "up", resource + "p::1", resource + "old", "**", 0},
		{"", "", "", "", "", "", "", 0xffff},
		{"urn:pulumi:dev::proj::pkg::Name::n", "pkg::Name", "n", "urn:pulumi:dev::proj::my:Comp::c", "pkg", "n", "n",
			0x0fff},
		{"urn:pulumi:::::::", "a:b", "::", "urn:pulumi:", "::", "urn:pulumi:x", "*", 0x1234},
		{"no URN", "a", "$", "neither", "x::", "$$", "a$b", 0x8040},
		{resource + "p", "pulumi:providers:", "p", resource + "p", "p", resource + "p", resource + "p", 0x4a40},
	} {
		for bit := range 16 {
			if i == 0 || bit%4 == 0 {
				f.Add(h.u, h.typ, h.name, h.parent, h.provider, h.alias, h.target, h.flags^1<<bit)
			}
		}
	}
	f.Fuzz(func(t *testing.T, u, typ, name, parent, provider, alias, target string, flags uint16) {
		h := hostile{u, typ, name, parent, provider, alias, target, flags}
		base := h.base()
		pending := []engine.PendingOperation{{Kind: "creating", State: base[0], Done: h.has(9)},
			{Kind: h.name, State: base[1]}}
		h.play(t, base, pending)
		h.play(t, snapshot.Repair(base), nil)
		h.play(t, nil, nil)
	})
}

// play plays the update.
func (h hostile) play(t *testing.T, base []engine.State, pending []engine.PendingOperation) {
	t.Helper()
	goal := h.goal()
	run := engine.New(goal, base, pending)
	events := h.events()
	for range 1000 {
		for ready := run.Ready(); !ready.Empty(); ready = run.Ready() {
			for _, c := range ready.Start {
				if ev := h.answer(c); ev != nil {
					events = append([]engine.Event{ev}, events...)
				}
			}
		}
		if _, ended := run.Result(); ended || len(events) == 0 {
			break
		}
		if h.has(0) && run.InFlight() == 0 {
			data, err := run.Suspend()
			if err != nil {
				t.Fatal(err)
			}
			if run, err = engine.Resume(goal, base, pending, data); err != nil {
				t.Fatal(err)
			}
		}
		run.Handle(events[0])
		events = events[1:]
	}
	if _, ended := run.Result(); !ended {
		t.Errorf("it does not end: %+v", run.Progress())
	}
	states, _ := run.Snapshot()
	snapshot.Repair(states)
}
