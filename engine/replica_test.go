package engine

import (
	"strings"
	"testing"
)

const (
	replicaProvider = "urn:pulumi:dev::proj::pulumi:providers:test::default"
	replicaOther    = "urn:pulumi:dev::proj::pulumi:providers:test::other"
	replicaResource = "urn:pulumi:dev::proj::test:x:R::r"
)

var replicaGoal = Goal{Kind: KindUp, Version: 2, Organization: "o", Project: "proj", Stack: "dev", Parallel: 4}

// replicaBase is a provider and a resource.
func replicaBase() []State {
	return []State{
		{URN: replicaProvider, Type: "pulumi:providers:test", Custom: true, ID: "p"},
		{
			URN: replicaResource, Type: "test:x:R", Custom: true, ID: "r-1", Provider: replicaProvider + "::p",
			Inputs: Bag{Digest: "in"}, Outputs: Bag{Digest: "out"},
		},
	}
}

// replicaProgram is what the program registers of replicaBase.
func replicaProgram() []Registered {
	return []Registered{
		{Epoch: 1, Seq: 1, Registration: Registration{
			Type: "pulumi:providers:test", Name: "default", Custom: true, Digest: "1",
		}},
		{Epoch: 1, Seq: 2, Registration: Registration{
			Type: "test:x:R", Name: "r", Custom: true, Provider: replicaProvider + "::p", Inputs: Bag{Digest: "in"},
			Digest: "2",
		}},
	}
}

// replicate passes the program through a replica, for which nothing has changed, and attaches what that found out.
func replicate(t *testing.T, program []Registered) {
	t.Helper()
	replicateOver(t, replicaBase(), program)
}

func replicateOver(t *testing.T, base []State, program []Registered) {
	t.Helper()
	r := NewReplica(replicaGoal, base, nil)
	for i := range program {
		asked, goesOn := r.Handle(program[i])
		if !goesOn || len(asked.Plans) != 1 || len(asked.Answers) != 0 {
			t.Fatalf("%s: %+v, goes on %v", program[i].Name, asked, goesOn)
		}
		p := asked.Plans[0]
		decided, goesOn := r.Handle(Planned{Op: p.Op, Inputs: p.Goal.Inputs, Diff: Diff{Change: ChangeNone}})
		if !goesOn || len(decided.Answers) != 1 || decided.Answers[0].Reply.Seq != program[i].Seq {
			t.Fatalf("%s: %+v, goes on %v", program[i].Name, decided, goesOn)
		}
		program[i].Ahead = &decided.Answers[0].Ahead
	}
}

func TestARunUsesThePlansOfAReplicaAndRepeatsNoReply(t *testing.T) {
	other := Registered{Epoch: 1, Seq: 3, Registration: Registration{
		Type: "pulumi:providers:test", Name: "other", Custom: true, Digest: "3",
	}}
	base := append(replicaBase(), State{URN: replicaOther, Type: "pulumi:providers:test", Custom: true, ID: "o"})
	program := append(replicaProgram(), other)
	replicateOver(t, base, program)
	run := New(replicaGoal, base, nil)
	run.Handle(RunStarted{Epoch: 1})
	for _, r := range program {
		run.Handle(r)
	}
	ready := run.Ready()
	if len(ready.Start)+len(ready.Replies) > 0 || len(ready.Changes) == 0 {
		t.Errorf("%+v", ready)
	}
	if states, _ := run.Snapshot(); len(states) != 3 || states[1].URN != replicaResource || states[2].URN != replicaOther {
		t.Errorf("they are recorded in another order than that of registration: %+v", states)
	}
	run.Handle(ProgramExited{Epoch: 1})
	run.Ready()
	if got, ended := run.Result(); !ended || got.Status != StatusSucceeded || got.Changes[string(StepSame)] != 2 {
		t.Errorf("ended %v: %+v", ended, got)
	}
}

// together passes a component and its outputs through a replica, and then gives both to a Run at once. It returns the
// states that this ends with.
func together(t *testing.T, goal Goal, base []State, component Registered, outputs OutputsRegistered) []State {
	t.Helper()
	replica := NewReplica(goal, base, nil)
	one, _ := replica.Handle(component)
	two, goesOn := replica.Handle(outputs)
	if !goesOn || len(one.Answers) != 1 || one.Answers[0].Reply.URN != outputs.URN || len(two.Answers) != 1 {
		t.Fatalf("%+v, %+v, goes on %v", one, two, goesOn)
	}
	component.Ahead, outputs.Ahead = &one.Answers[0].Ahead, &two.Answers[0].Ahead
	run := New(goal, base, nil)
	run.Handle(RunStarted{Epoch: 1})
	run.Handle(component)
	run.Handle(outputs)
	run.Handle(ProgramExited{Epoch: 1})
	if ready := run.Ready(); len(ready.Replies) > 0 {
		t.Errorf("%+v", ready)
	}
	if got, ended := run.Result(); !ended || got.Status != StatusSucceeded {
		t.Errorf("ended %v: %+v", ended, got)
	}
	if len(run.Early)+len(run.EarlyNames) > 0 {
		t.Errorf("%v still wait", run.EarlyNames)
	}
	states, _ := run.Snapshot()
	return states
}

func TestOutputsThatComeTogetherWithTheirComponentAreStored(t *testing.T) {
	const before, other = "urn:pulumi:dev::proj::my:x:C::before", "urn:pulumi:dev::proj::my:x:C::other"
	targeted := replicaGoal
	targeted.Targets = []string{other}
	renamed := Registration{Type: "my:x:C", Name: "after", Digest: "1", Aliases: []Alias{{URN: before}}}
	for name, c := range map[string]struct {
		goal Goal
		reg  Registration
	}{
		"a component":                            {replicaGoal, Registration{Type: "my:x:C", Name: "before", Digest: "1"}},
		"a renamed one that targets leave alone": {targeted, renamed},
	} {
		base := []State{{URN: before, Type: "my:x:C", Outputs: Bag{Digest: "old"}}, {URN: other, Type: "my:x:C"}}
		states := together(t, c.goal, base,
			Registered{Epoch: 1, Seq: 1, Registration: c.reg},
			OutputsRegistered{Epoch: 1, Seq: 2, URN: before, Outputs: Bag{Digest: "out"}})
		if len(states) != 1 || states[0].URN != before || states[0].Outputs.Digest != "out" {
			t.Errorf("%s: %+v", name, states)
		}
	}
}

func TestTheProgramGetsItsOwnInputsOfWhatIsNotReplacedYet(t *testing.T) {
	goal := replicaGoal
	goal.Kind, goal.RunProgram = KindRefresh, true
	base := replicaBase()
	base[1].PendingReplacement = true
	run := New(goal, base, nil)
	run.Handle(RunStarted{Epoch: 1})
	registered := replicaProgram()[1]
	registered.Provider, registered.Inputs.Digest = "", "declared"
	run.Handle(registered)
	replies := run.Ready().Replies
	if len(replies) != 1 || replies[0].Result != ResultSkip || replies[0].Object.Digest != "declared" {
		t.Errorf("%+v", replies)
	}
}

func TestARunThatDecidesOtherwiseThanAReplicaFailsBeforeTheStep(t *testing.T) {
	for _, change := range []ChangeKind{ChangeUpdate, ChangeReplace} {
		for _, first := range []bool{false, true} {
			program := replicaProgram()
			replicate(t, program)
			program[1].Inputs.Digest, program[1].Digest = "other", "3"
			run := New(replicaGoal, replicaBase(), nil)
			run.Handle(RunStarted{Epoch: 1})
			run.Handle(program[0])
			run.Handle(program[1])
			plan, ok := run.Ready().Start[0].(Plan)
			if !ok || plan.Answer != nil {
				t.Fatalf("%+v", plan)
			}
			run.Handle(Planned{Op: plan.Op, Inputs: program[1].Inputs, Diff: Diff{Change: change,
				DeleteBeforeReplace: first}})
			if ready := run.Ready(); len(ready.Start)+len(ready.Replies) > 0 {
				t.Errorf("%s: it goes on with %+v", change, ready)
			}
			run.Handle(ProgramExited{Epoch: 1})
			run.Ready()
			got, ended := run.Result()
			if !ended || got.Status != StatusFailed || !strings.Contains(got.Error, "run the update again") {
				t.Errorf("%s: ended %v: %+v", change, ended, got)
			}
			states, pending := run.Snapshot()
			if len(states) != 2 || states[1].ID != "r-1" || len(pending) > 0 {
				t.Errorf("%s: %+v, pending %+v", change, states, pending)
			}
		}
	}
}

func TestAPreviewReplacesWhatItsReplicaReplacesInEitherOrder(t *testing.T) {
	goal := replicaGoal
	goal.DryRun = true
	for _, first := range []bool{false, true} {
		replica, program := NewReplica(goal, replicaBase(), nil), replicaProgram()
		program[1].Inputs.Digest, program[1].DeleteBeforeReplace = "other", &first
		for i, change := range []ChangeKind{ChangeNone, ChangeReplace} {
			asked, _ := replica.Handle(program[i])
			p := asked.Plans[0]
			decided, _ := replica.Handle(Planned{Op: p.Op, Inputs: p.Goal.Inputs, Diff: Diff{Change: change}})
			if len(decided.Answers) != 1 {
				t.Fatalf("deleted first %v: the replica has decided %+v", first, decided)
			}
			program[i].Ahead = &decided.Answers[0].Ahead
		}
		run := New(goal, replicaBase(), nil)
		run.Handle(RunStarted{Epoch: 1})
		run.Handle(program[0])
		run.Handle(program[1])
		run.Handle(ProgramExited{Epoch: 1})
		run.Ready()
		got, ended := run.Result()
		if !ended || got.Status != StatusSucceeded || got.Changes[string(StepReplace)] != 1 {
			t.Errorf("deleted first %v: ended %v: %+v", first, ended, got)
		}
	}
}

func TestACancelledUpdateDoesNotContradictItsReplica(t *testing.T) {
	program := replicaProgram()
	replicate(t, program)
	run := New(replicaGoal, replicaBase(), nil)
	run.Handle(RunStarted{Epoch: 1})
	run.Handle(Cancelled{})
	run.Handle(program[0])
	run.Handle(program[1])
	run.Handle(ProgramExited{Epoch: 1})
	run.Ready()
	if got, ended := run.Result(); !ended || got.Status != StatusCancelled || strings.Contains(got.Error, "reported") {
		t.Errorf("ended %v: %+v", ended, got)
	}
}

func TestThereIsNoReplicaBesideARunThatBeginsWithOtherThings(t *testing.T) {
	refreshed, destroyed := replicaGoal, replicaGoal
	refreshed.Refresh, destroyed.Kind = true, KindDestroy
	pending := []PendingOperation{{Op: 1, Kind: "updating", State: replicaBase()[1]}}
	for name, r := range map[string]*Replica{
		"a refresh":                NewReplica(refreshed, replicaBase(), nil),
		"a destroy":                NewReplica(destroyed, replicaBase(), nil),
		"pending operations":       NewReplica(replicaGoal, replicaBase(), pending),
		"nothing in the stack yet": NewReplica(replicaGoal, nil, nil),
	} {
		if r != nil {
			t.Errorf("%s: there is one", name)
		}
	}
}

func TestAReplicaEndsWithTheFirstEffect(t *testing.T) {
	r := NewReplica(replicaGoal, replicaBase(), nil)
	program := replicaProgram()
	created := program[0]
	created.Seq, created.Name, created.Digest = 3, "other", "other"
	asked, _ := r.Handle(program[0])
	if decided, goesOn := r.Handle(created); goesOn || len(decided.Answers)+len(decided.Plans) > 0 {
		t.Errorf("after a create it has decided %+v, goes on %v", decided, goesOn)
	}
	if len(asked.Plans) != 1 {
		t.Errorf("%+v", asked)
	}
}

func TestWhatTheProgramWasToldIsRecordedThoughItHasFailedSince(t *testing.T) {
	program := replicaProgram()
	replicate(t, program)
	run := New(replicaGoal, replicaBase(), nil)
	run.Handle(RunStarted{Epoch: 1})
	for _, r := range program {
		run.Handle(r)
	}
	run.Handle(ProgramExited{Epoch: 1, Error: "it failed"})
	ready := run.Ready()
	if _, ended := run.Result(); !ended || len(ready.Start)+len(ready.Replies) > 0 {
		t.Fatalf("it ended: %v; %+v", ended, ready)
	}
	kept := 0
	for _, d := range ready.Changes {
		if d.Kind == DeltaKeep {
			kept += d.Count
		}
	}
	if kept != len(program) {
		t.Errorf("%d of %d resources are recorded: %+v", kept, len(program), ready.Changes)
	}
}

// TestTheFirstOfTwoThatClaimANameKeepsIt registers what claims a former name, and then something under that name: the
// same is decided, and said, whether the second one has arrived already or not.
func TestTheFirstOfTwoThatClaimANameKeepsIt(t *testing.T) {
	const old, renamed = replicaResource, "urn:pulumi:dev::proj::test:x:R::renamed"
	for _, together := range []bool{false, true} {
		claims := replicaProgram()
		claims[1].Name, claims[1].Aliases = "renamed", []Alias{{URN: old}}
		if together {
			replicate(t, claims)
		}
		run := New(replicaGoal, replicaBase(), nil)
		run.Handle(RunStarted{Epoch: 1})
		taken := Registered{Epoch: 1, Seq: 3, Registration: Registration{
			Type: "test:x:R", Name: "r", Custom: true, Provider: replicaProvider + "::p", Inputs: Bag{Digest: "in"},
			Digest: "3",
		}}
		var said []string
		ready := func() {
			for {
				r := run.Ready()
				for _, e := range r.Events {
					if e.Kind == EmitDiagnostic && e.Severity == "error" {
						said = append(said, e.Message)
					}
				}
				if r.Empty() {
					return
				}
				for _, c := range r.Start {
					if p, ok := c.(Plan); ok {
						run.Handle(Planned{Op: p.Op, Inputs: p.Goal.Inputs, Diff: Diff{Change: ChangeNone}})
					}
				}
			}
		}
		for _, r := range claims {
			run.Handle(r)
			if !together {
				ready()
			}
		}
		run.Handle(taken)
		ready()
		run.Handle(ProgramExited{Epoch: 1, Error: "it failed"})
		ready()
		states, _ := run.Snapshot()
		if len(states) != 2 || states[1].URN != renamed {
			t.Errorf("together %v: the states are %+v", together, states)
		}
		if len(said) != 1 || !strings.Contains(said[0], "is also an alias of") {
			t.Errorf("together %v: it says %q", together, said)
		}
	}
}
