package projection

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Otherwise `preview --expect-no-changes` would fail for every program that reads.
func TestAReadIsAChangeOnlyIfItBringsSomethingNew(t *testing.T) {
	s := &State{Rows: []*Row{{Type: "fake:index:Server", Name: "seen", Op: apitype.OpRead}}}
	if s.Changed() {
		t.Error("a read is a change while it is not known what it brings")
	}
	s.End = &deployments.UpdateInfo{Changes: map[string]int{"same": 3}}
	if s.Changed() {
		t.Error("a read that brings nothing new is a change")
	}
	s.End.Changes["read"] = 1
	if !s.Changed() {
		t.Error("a read that brings something new is no change")
	}
}
