package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// said are events with what a preview that surveys tells of resources, by their URN.
func said(pairs ...string) (items []deployments.WatchEvent) {
	for i := 0; i < len(pairs); i += 2 {
		severity := "info"
		if strings.HasPrefix(pairs[i+1], "error") {
			severity = "error"
		}
		items = append(items, deployments.WatchEvent{Event: &apitype.EngineEvent{DiagnosticEvent: &apitype.DiagnosticEvent{
			URN: pairs[i], Message: pairs[i+1] + "\n", Severity: severity, Prefix: severity + ": "}}})
	}
	return items
}

func orphaned(id string) string {
	return deployments.Finding{Kind: deployments.FoundOrphan, Type: "gcp:pubsub/topic:Topic", ID: id,
		Why: "it bears the stack's mark"}.String()
}

func TestOrphansAreListedByAPreviewOfARefresh(t *testing.T) {
	d := inProject(t)
	d.refused(2, "stack rebuild --dry-run", "stack", "orphans")
	d = topicDesk(t)
	var asked deployments.UpdateRequest
	notListed := deployments.Finding{Kind: deployments.NotListed, Type: "gcp:pubsub/topic:Topic", Why: "no rule"}
	told := said(aTopic, orphaned("left-1"), aTopic, orphaned("left-1"), aTopic, orphaned("left-\x1b2"), aTopic,
		notListed.String(), aTopic, "something else")
	d.service.Play = func(r deployments.UpdateRequest) memory.Script {
		asked = r
		return memory.Script{Status: "succeeded", Items: told}
	}
	got := d.must("stack", "orphans")
	for _, want := range []string{"left-1: it bears", "Nothing was deleted", "import TYPE NAME ID --protect=false",
		"Not listed: gcp:pubsub/topic:Topic: no rule"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("it says %q not once:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") || strings.Contains(got, "something else") {
		t.Errorf("it says\n%q", got)
	}
	if asked.Kind != engine.KindRefresh || !asked.DryRun || !asked.Survey {
		t.Errorf("it asked for %+v", asked)
	}
	var list struct {
		Orphans []struct{ Type, ID string }
	}
	if err := json.Unmarshal([]byte(d.must("stack", "orphans", "--json")), &list); err != nil || len(list.Orphans) != 2 ||
		list.Orphans[1].ID != "left-1" {
		t.Errorf("%+v %v", list, err)
	}
	told = nil
	if got := d.must("stack", "orphans"); !strings.Contains(got, "Nothing was found") ||
		strings.Contains(got, "Nothing was deleted") {
		t.Errorf("of nothing it says\n%s", got)
	}
}

// TestASurveyThatFailsIsNoAllClear has a preview that ends before anything was looked for, which may say why or not.
func TestASurveyThatFailsIsNoAllClear(t *testing.T) {
	for _, c := range []struct {
		told []deployments.WatchEvent
		ends string // the error of the update
		says string
	}{
		{said("", "error: plugin notes is not installed"), "the update failed", "  error: plugin notes is not installed\n"},
		{said("urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev", "error: sitex is not declared"), "the update failed",
			"  error: sitex is not declared\n"},
		{nil, "its worker was lost", "  its worker was lost\n"},
	} {
		d := topicDesk(t)
		d.service.Play = func(deployments.UpdateRequest) memory.Script {
			return memory.Script{Status: "failed", Error: c.ends, Items: c.told}
		}
		for _, args := range [][]string{{"stack", "orphans"}, {"stack", "rebuild", "--dry-run"}} {
			got := d.run(args...)
			const heading = "Not everything was looked for, because the preview failed:\n"
			if got.code != 1 || !strings.Contains(got.out, heading+c.says) ||
				strings.Contains(got.out, "Nothing was found") {
				t.Errorf("%v: code %d\n%s", args, got.code, got.out)
			}
			var list struct{ Errors []string }
			got = d.run(append(args, "--json")...)
			if err := json.Unmarshal([]byte(got.out), &list); err != nil || len(list.Errors) != 1 {
				t.Errorf("%v: %v %v", args, list, err)
			}
		}
	}
}

// TestWhatLooksTakesTheProjectAlong: a plugin may be the project's own.
func TestWhatLooksTakesTheProjectAlong(t *testing.T) {
	d := topicDesk(t)
	var asked deployments.UpdateRequest
	d.service.Play = func(r deployments.UpdateRequest) memory.Script {
		asked = r
		return memory.Script{Status: "succeeded"}
	}
	for _, args := range [][]string{{"stack", "orphans"}, {"settle", "try", aTopic}} {
		asked = deployments.UpdateRequest{}
		if d.must(args...); asked.Bundle == "" {
			t.Errorf("%v has no bundle", args)
		}
	}
}

func TestARebuildListsWhatAnAdoptionWouldFind(t *testing.T) {
	const ours, theirs, gone, closed = "urn:pulumi:dev::shop::a:b:C::ours", "urn:pulumi:dev::shop::a:b:C::theirs",
		"urn:pulumi:dev::shop::a:b:C::gone", "urn:pulumi:dev::shop::a:b:C::closed"
	d := inProject(t)
	d.refused(2, "deployctl up --adopt rebuilds", "stack", "rebuild")
	var asked deployments.UpdateRequest
	orphan := func(id string) string {
		return deployments.Finding{Kind: deployments.FoundOrphan, Type: "a:b:C", ID: id, Why: "its mark"}.String()
	}
	d.service.Play = func(r deployments.UpdateRequest) memory.Script {
		asked = r
		return memory.Script{Status: "failed", Error: "closed failed", Items: said(
			ours, orphan("o-1"), // the list came before the program had declared it
			ours, ours+" exists already, and is this stack's: recovered o-1",
			theirs, theirs+" exists already, owned by stack web/prod, and is taken over: t-1",
			gone, deployments.Finding{Kind: deployments.NotFound, Type: "a:b:C", Why: "it is not there"}.String(),
			closed, "error: 403",
			gone, orphan("left"))}
	}
	out := d.run("stack", "rebuild", "--dry-run")
	for _, want := range []string{"Found, and this stack's:\n  a:b:C ours  o-1\n",
		"takes it over:\n  a:b:C theirs  t-1  (stack web/prod)\n",
		"Not found:\n  a:b:C closed: error: 403\n  a:b:C gone: it is not there\n",
		"declared by nobody:\n  a:b:C left: its mark\n", "Nothing was written"} {
		if !strings.Contains(out.out, want) {
			t.Errorf("it does not say %q:\n%s", want, out.out)
		}
	}
	if out.code != 1 || strings.Contains(out.out, "o-1: its mark") {
		t.Errorf("it ends with %d:\n%s", out.code, out.out)
	}
	if asked.Kind != engine.KindUp || !asked.DryRun || !asked.Survey || asked.Bundle == "" ||
		!slices.Equal(asked.Adopt, []string{"**"}) {
		t.Errorf("it asked for %+v", asked)
	}
}
