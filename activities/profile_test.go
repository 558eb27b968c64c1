package activities

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

const hushed = "hush-hush-profile"

// useProfile is the configuration of a stack that names the profile aws.
var useProfile = map[string]deployments.ConfigValue{stackkeys.Profile: {Value: "aws"}}

// setProfile sets variables of the profile aws, which is for stacks.
func (h *house) setProfile(stacks []string, set ...deployments.ProfileVariable) {
	h.t.Helper()
	_, err := h.store.Access.ChangeProfile(h.t.Context(), deployments.ProfileChange{
		Organization: testStack.Organization, Name: "aws", Stacks: &stacks, Set: set})
	if err != nil {
		h.t.Fatal(err)
	}
}

// usesOf returns the uses of profiles that the audit log has: the code of each, and what it is of.
func (h *house) usesOf() (uses []string) {
	h.t.Helper()
	err := h.store.Access.Audit(h.t.Context(), deployments.AuditQuery{Organization: testStack.Organization},
		func(e deployments.AuditEntry) error {
			if e.Method == "Profiles/Use" {
				uses = append(uses, string(e.Code)+" "+e.Subject)
			}
			return nil
		})
	if err != nil {
		h.t.Fatal(err)
	}
	return uses
}

// refusedClaim claims an update whose profile is refused.
func (h *house) refusedClaim(config map[string]deployments.ConfigValue) error {
	h.t.Helper()
	_, err := call[deployments.Claimed](h, h.acts.ClaimStack, deployments.ClaimInput{Number: 1,
		Update: deployments.UpdateName{StackName: testStack, Version: "1"},
		Request: deployments.UpdateRequest{Stack: testStack, Kind: engine.KindUp, Message: "m", Config: config,
			Submitted: h.submitted(testStack)}})
	return err
}

func TestTheVariablesOfAProfileGoBeforeThoseOfTheShell(t *testing.T) {
	h := newHouse(t)
	elsewhere := t.TempDir()
	h.setProfile([]string{"*/dev"}, deployments.ProfileVariable{Name: "TOY_WORLD", Value: elsewhere})
	claimed := h.claim(deployments.UpdateRequest{Config: useProfile, Bundle: h.upload(scenarioProject(
		"steps: [{register: thing, type: 'toy:index:Thing', properties: {name: here}}]"))})
	run, out, err := h.play(claimed, nil)
	if err != nil || out.Error != "" {
		t.Fatalf("%+v %v\n%s", out, err, h.log())
	}
	for dir, there := range map[string]bool{elsewhere: true, h.world: false} {
		if _, err := os.Stat(filepath.Join(dir, effectsFile)); (err == nil) != there {
			t.Errorf("the provider works in %s, the profile says %s: %v", dir, elsewhere, err)
		}
	}
	info := h.settle(run)
	if info.Profile == nil || *info.Profile != (deployments.ProfileVersion{Name: "aws", Version: 1}) {
		t.Errorf("the history says that it used %+v", info.Profile)
	}
	if uses := h.usesOf(); len(uses) != 1 || uses[0] != " profile=aws version=1 kind=up dry_run=false update=1" {
		t.Errorf("the audit log has the uses %q", uses)
	}
	if !strings.Contains(h.log(), "The update uses version 1 of the profile aws.") {
		t.Errorf("the log does not say so:\n%s", h.log())
	}
}

func TestASecretOfAProfileIsSecretInStatesAndLogs(t *testing.T) {
	h := newHouse(t)
	h.setProfile([]string{"test/dev"}, deployments.ProfileVariable{Name: "KEY", Value: hushed, Secret: true})
	claimed := h.claim(deployments.UpdateRequest{Config: useProfile, Bundle: h.upload(scenarioProject(`
steps:
  - register: thing
    type: toy:index:Thing
    properties: {name: here, note: "it is ` + hushed + `!"}
  - log: "it is ` + hushed + `"
outputs: {note: "${thing.note}"}
`))})
	run, out, err := h.play(claimed, nil)
	if err != nil || out.Error != "" {
		t.Fatalf("%+v %v\n%s", out, err, h.log())
	}
	state := run.find("thing")
	for what, bag := range map[string]engine.Bag{"inputs": state.Inputs, "outputs": state.Outputs} {
		note := h.values(bag)["note"]
		if !note.IsSecret() || note.SecretValue().Element != resource.NewProperty("it is "+hushed+"!") {
			t.Errorf("the %s have %v", what, note)
		}
	}
	h.settle(run)
	if text := h.log(); strings.Contains(text, hushed) || !strings.Contains(text, "it is [secret]") {
		t.Errorf("the log is\n%s", text)
	}
	exported, err := h.store.Export(t.Context(), statestore.Exchange{Stack: testStack}, 0, false)
	if err != nil || strings.Contains(string(exported.Deployment), hushed) {
		t.Errorf("the state has it in clear: %s, %v", exported.Deployment, err)
	}
}

func TestAnErrorOfAProviderDoesNotShowASecretOfTheProfile(t *testing.T) {
	h := newHouse(t)
	h.setProfile([]string{"test/dev"}, deployments.ProfileVariable{Name: "KEY", Value: hushed, Secret: true})
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy, Config: useProfile})
	result, err := h.step(h.create(texts("name", "n", "do", "refuse", "secret", hushed)), 1)
	if err != nil || strings.Contains(result.Error, hushed) || !strings.Contains(result.Error, "[secret]") {
		t.Errorf("%q, %v", result.Error, err)
	}
}

func TestAnUpdateKeepsTheVersionOfItsProfileAndTheNextOneTakesTheNewest(t *testing.T) {
	h := newHouse(t)
	variable := func(value string) deployments.ProfileVariable {
		return deployments.ProfileVariable{Name: "KEY", Value: value}
	}
	uses := func(version int, value string) {
		t.Helper()
		s, err := h.acts.sessions.Hosted(t.Context(), h.update, h.base)
		if err != nil {
			t.Fatal(err)
		}
		p := s.Request().Profile
		if p == nil || p.Version != version || len(p.Variables) != 1 || p.Variables[0].Value != value {
			t.Errorf("update %s uses %+v, not version %d", h.update.Version, p, version)
		}
	}
	h.setProfile([]string{"test/*"}, variable("one"))
	r := deployments.UpdateRequest{Config: useProfile, RequestID: "first", Kind: engine.KindUp}
	h.claim(r)
	uses(1, "one")
	h.setProfile(nil, variable("two")) // nobody may begin with it
	release(h)
	uses(1, "one") // another session of the same worker
	release(h)
	h.reclaim(r)
	uses(1, "one")
	if err := h.store.Access.RemoveProfile(t.Context(), testStack.Organization, "aws"); err != nil {
		t.Fatal(err)
	}
	release(h)
	h.reclaim(r)
	uses(1, "one")
	if got := h.usesOf(); len(got) != 1 {
		t.Errorf("the audit log has the uses %q", got)
	}
	release(h)
	h.setProfile([]string{"test/*"}, variable("three"))
	again := deployments.UpdateRequest{Config: useProfile, RequestID: "second", Kind: engine.KindUp,
		Stack: testStack, DryRun: true, Submitted: h.submitted(testStack),
		Profile: &deployments.PinnedProfile{ProfileVersion: deployments.ProfileVersion{Name: "aws", Version: 9}}}
	h.claim(again)
	previewed := h.acts.sessions.Find(h.update).Request().Profile
	if previewed == nil || previewed.Version != 1 || previewed.Variables[0].Value != "three" {
		t.Errorf("a preview uses %+v, whatever its request said", previewed)
	}
}

func TestTheProfileOfAnUpdateThatWaitsIsLookedAtUntilItBegins(t *testing.T) {
	h := newHouse(t)
	variable := deployments.ProfileVariable{Name: "KEY", Value: "x"}
	h.setProfile([]string{"test/*"}, variable)
	h.limit(deployments.Quota{deployments.LimitUpdates: 1})
	end := h.otherRuns()
	in := beginning(h, "1", deployments.UpdateRequest{RequestID: "waits", Config: useProfile})
	waits := func(stacks []string, kind, sentence string, again bool, uses int) {
		t.Helper()
		h.setProfile(stacks, variable)
		for range 2 {
			_, err := call[deployments.Claimed](h, h.acts.ClaimStack, in)
			failsAs(t, err, kind, sentence, again)
		}
		if got := h.usesOf(); len(got) != uses {
			t.Errorf("the audit log has the uses %q", got)
		}
	}
	waits([]string{"test/dev"}, deployments.ErrorPostponed, oneAtATime, true, 1)
	waits([]string{"*/dev"}, deployments.ErrorPostponed, oneAtATime, true, 2)
	waits([]string{"test/prod"}, string(deployments.CodeForbidden), "is not for the stack", false, 4)
	h.setProfile([]string{"test/dev"}, variable)
	end()
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, in); err != nil {
		t.Fatal(err)
	}
	h.setProfile(nil, variable)
	if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, in); err != nil { // its answer was lost
		t.Errorf("the first claim, once more: %v", err)
	}
	r, err := h.store.Updates.Request(t.Context(), in.Update)
	if err != nil || r.Profile == nil || r.Profile.Version != 5 {
		t.Errorf("it has begun with %+v, %v", r.Profile, err)
	}
}

func TestAnUpdateWhoseProfileIsRefusedDoesNotBegin(t *testing.T) {
	for name, c := range map[string]struct {
		stacks []string
		config string
		code   deployments.Code
		says   string
	}{
		"one that is not there": {[]string{"test/dev"}, "gcp", deployments.CodeNotFound, "deployctl profile set gcp"},
		"one for another stack": {[]string{"test/prod", "web/*"}, "aws", deployments.CodeForbidden,
			"deployctl profile set aws --stacks"},
		"one for no stack": {nil, "aws", deployments.CodeForbidden, "is not for the stack"},
		"one of another organization": {[]string{"*/*"}, "evil/aws", deployments.CodeInvalid,
			"configuration deployctl:profile"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.setProfile(c.stacks, deployments.ProfileVariable{Name: "KEY", Value: hushed, Secret: true})
			err := h.refusedClaim(map[string]deployments.ConfigValue{stackkeys.Profile: {Value: c.config}})
			if errorType(err) != string(c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it is refused with %v", err)
			}
			head, err := h.store.Head(t.Context(), testStack)
			if err != nil || head.Active != nil || len(h.effects()) > 0 {
				t.Errorf("something was done: %+v, %q, %v", head, h.effects(), err)
			}
			r, err := h.store.Updates.Request(t.Context(), deployments.UpdateName{StackName: testStack, Version: "1"})
			if err != nil || r.Message != "m" || r.Profile != nil {
				t.Errorf("the history will say %+v, %v", r, err)
			}
		})
	}
}

// TestAStackThatAProfileIsNotForGetsNoToken has a stack name a profile with clouds of other stacks.
func TestAStackThatAProfileIsNotForGetsNoToken(t *testing.T) {
	h := newHouse(t)
	h.store.Access.Issuer.SetAddress("https://deploy.example.com")
	if _, err := h.store.Access.ChangeProfile(t.Context(), deployments.ProfileChange{
		Organization: testStack.Organization, Name: "aws", Stacks: &[]string{"test/prod"},
		Clouds: deployments.Clouds{AWS: &deployments.AWSRole{Role: "arn:aws:iam::123456789012:role/deploy"}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := h.refusedClaim(useProfile); errorType(err) != string(deployments.CodeForbidden) {
		t.Errorf("it is refused with %v", err)
	}
	if s := h.acts.sessions.Find(deployments.UpdateName{StackName: testStack, Version: "1"}); s != nil {
		t.Error("it has a session")
	}
}
