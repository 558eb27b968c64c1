package engine

import "testing"

func TestAnImportUsesTheRootThatIsStoredWhateverItsName(t *testing.T) {
	const root = "urn:pulumi:dev::proj::pulumi:pulumi:Stack::its-own"
	goal := replicaGoal
	goal.Kind = KindImport
	run := New(goal, []State{{URN: root, Type: rootType}}, nil)
	run.Handle(RunStarted{Epoch: 1})
	run.Handle(Registered{Epoch: 1, Seq: 1, Registration: Registration{Type: rootType, Name: "proj-dev", Digest: "1"}})
	ready := run.Ready()
	if len(ready.Replies) != 1 || ready.Replies[0].URN != root {
		t.Errorf("it answers %+v", ready.Replies)
	}
	run.Handle(ProgramExited{Epoch: 1})
	run.Ready()
	if states, _ := run.Snapshot(); len(states) != 1 || states[0].URN != root {
		t.Errorf("the states are %+v", states)
	}
}
