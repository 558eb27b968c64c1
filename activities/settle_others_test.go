package activities

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// The stock CLI stores the inputs of a create as they were checked, and no seed.
func TestACreateOfAnotherEngineIsFoundByANameThatWasGeneratedForIt(t *testing.T) {
	defaults := func(keys ...string) resource.PropertyValue {
		var list []resource.PropertyValue
		for _, key := range keys {
			list = append(list, resource.NewProperty(key))
		}
		return resource.NewProperty(list)
	}
	for name, c := range map[string]struct {
		name    string
		set     *resource.PropertyValue // __defaults
		absent  bool
		outcome engine.Outcome
	}{
		"a generated name":                     {name: "thing-1a2b3c4", outcome: engine.OutcomeDone},
		"a generated name of nothing":          {name: "thing-1a2b3c4", absent: true, outcome: engine.OutcomeAbsent},
		"a name of the program":                {name: "ours", outcome: engine.OutcomeUndecidable},
		"a name of the program that is not":    {name: "ours", absent: true, outcome: engine.OutcomeAbsent},
		"a generated name of another resource": {name: "other-1a2b3c4", outcome: engine.OutcomeUndecidable},
		"a name that its provider has set": {name: "ours", set: new(defaults("size", "name")),
			outcome: engine.OutcomeDone},
		"a name that its provider has not set": {name: "thing-1a2b3c4", set: new(defaults("size")),
			outcome: engine.OutcomeUndecidable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, map[string]deployments.ConfigValue{stackkeys.Settle: {Value: `{"` + thingType +
				`": {"read": "property:name"}}`}})
			inputs := texts("name", c.name)
			if c.set != nil {
				inputs["__defaults"] = *c.set
			}
			if !c.absent {
				if err := os.WriteFile(filepath.Join(h.world, c.name), []byte(`{"name": "`+c.name+`"}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			step := h.create(inputs)
			step.URN, step.Type, step.Provider = thingURN, thingType, h.toy()
			got, err := call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{
				Update: h.update, Base: h.base, Round: 1, Settle: engine.Settle{Step: step},
			})
			if err != nil || got.Outcome != c.outcome || c.outcome == engine.OutcomeDone && got.ID != c.name {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

func TestTheEndOfALeaseAsksForAnUpdateThatSettlesWhatItsClientLeft(t *testing.T) {
	h := newHouse(t)
	journal := func(stack string) []byte {
		return []byte(`[{"sequenceID":1,"kind":0,"operationID":1,"operation":{"type":"creating","resource":` +
			`{"urn":"urn:pulumi:` + stack + `::test::t:m:T::a","type":"t:m:T","custom":true}}}]`)
	}
	elsewhere := deployments.StackName{Organization: "another", Project: "p", Stack: "s"} // that the update could not read
	for version, c := range map[string]struct {
		secrets string // a journal entry before
		status  engine.Status
		asks    bool
		says    string
	}{
		"1": {status: engine.StatusCancelled, asks: true},
		"2": {status: engine.StatusSucceeded},
		"3": {status: engine.StatusCancelled, says: "no key of the stack's secrets provider (passphrase)",
			secrets: `[{"sequenceID":0,"kind":6,"secretsProvider":{"type":"passphrase","state":{"salt":"v1:x"}}}]`},
	} {
		t.Run(string(c.status)+c.says, func(t *testing.T) {
			store := h.store
			name := deployments.StackName{Organization: "o", Project: "test", Stack: "s" + version}
			if err := store.CreateStack(t.Context(), name, nil); err != nil {
				t.Fatal(err)
			}
			u := deployments.UpdateName{StackName: name, Version: "1"}
			request := deployments.UpdateRequest{Stack: name, RequestID: "r", Kind: engine.KindUp, Lease: &deployments.Lease{},
				Submitted: h.submitted(name),
				Authority: &deployments.Authority{Grants: [][]deployments.Grant{{{Role: deployments.RoleDeployer,
					Organization: "o"}}}},
				Config: map[string]deployments.ConfigValue{"deployctl:settle": {Value: "{}"},
					"a:b": {Value: "sealed", Secret: true}}}
			if _, err := call[struct{}](h, h.acts.BeginLease, deployments.UpdateInput{Update: u,
				Request: request}); err != nil {
				t.Fatal(err)
			}
			head, err := store.Head(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			l := deployments.Leased{Update: u, Fence: head.Fence}
			if c.secrets != "" {
				if err := store.Leases.WriteJournal(t.Context(), l, []byte(c.secrets)); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Leases.WriteJournal(t.Context(), l, journal(name.Stack)); err != nil {
				t.Fatal(err)
			}
			for range 2 { // an activity may run twice
				end, err := call[deployments.LeaseEnded](h, h.acts.EndLease, deployments.LeaseEnd{Update: u, Status: c.status,
					Error: "it ended"})
				if err != nil || (end.Settle != nil) != c.asks || !strings.Contains(end.Error, c.says) {
					t.Errorf("it ends as %+v, %v", end, err)
				}
				if s := end.Settle; s != nil && (s.Settle == nil || s.Kind != engine.KindRefresh || len(s.Config) != 1 ||
					s.Lease != nil || s.Validate() != nil || s.MayRead(deployments.RoleViewer, elsewhere)) {
					t.Errorf("it asks for %+v: %v", s, s.Validate())
				}
			}
		})
	}
}
