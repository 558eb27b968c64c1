package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	aTopic       = "urn:pulumi:dev::shop::gcp:pubsub/topic:Topic::events"
	aProvider    = "urn:pulumi:dev::shop::pulumi:providers:gcp::default"
	topicSecret  = `{"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"}`
	topicInState = `{"resources": [
		{"urn": "` + aProvider + `", "type": "pulumi:providers:gcp", "custom": true, "id": "p1",
			"inputs": {"project": "web"}},
		{"urn": "` + aTopic + `", "type": "gcp:pubsub/topic:Topic", "custom": true, "id": "projects/web/topics/events-1",
			"provider": "` + aProvider + `::p1", "inputs": {"name": "events-1", "key": ` + topicSecret + `}}]}`
)

// topicDesk has a stack with a topic.
func topicDesk(t *testing.T) *desk {
	d := inProject(t)
	if _, err := d.service.Import(t.Context(), deployments.ImportRequest{
		Stack:      deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"},
		Deployment: apitype.UntypedDeployment{Version: 3, Deployment: []byte(topicInState)},
	}); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestASettleRuleIsExplainedWithWhatItMakesOfAResource(t *testing.T) {
	d := topicDesk(t)
	if got := d.must("settle", "explain", "events"); !strings.Contains(got, "has no rule for gcp:pubsub/topic:Topic") ||
		!strings.Contains(got, "These are the catalogue's") || !strings.Contains(got, "a worker finds it out") {
		t.Errorf("without a rule of the stack it says\n%s", got)
	}
	for rule, want := range map[string]string{
		"projects/${config:project}/topics/${name}": "projects/web/topics/events-1, which is the resource's id",
		"${name}": "it makes events-1, and the resource's id is projects/web/topics/events-1",
		"projects/${value:project}/topics/${name}":    "a worker finds it out",
		"projects/${config:project}/topics/${key}":    "it cannot be used: the input key is secret",
		"projects/${config:project}/topics/${absent}": "it cannot be used: the input absent has no value",
	} {
		d.must("config", "set", "deployctl:settle", `{"gcp:pubsub/topic:Topic": {"read": "`+rule+`"}}`)
		for _, of := range []string{"events", aTopic} {
			if got := d.must("settle", "explain", of); !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
				t.Errorf("of %s it says\n%s", rule, got)
			}
		}
	}
	if got := d.must("settle", "explain", "gcp:pubsub/topic:Topic"); !strings.Contains(got,
		"1. The provider reads the id") {
		t.Errorf("of a type it says\n%s", got)
	}
}

func TestTheCataloguesRulesAreExplainedAndWhetherTheyNeedMarks(t *testing.T) {
	d := inProject(t)
	const hint = "deployctl config set deployctl:mark true"
	got := d.must("settle", "explain", "aws:kms/key:Key")
	if !strings.Contains(got, "the catalogue's") || !strings.Contains(got, "1. The function aws:") ||
		!strings.Contains(got, hint) {
		t.Errorf("of a type that needs marks it says\n%s", got)
	}
	d.must("config", "set", "deployctl:mark", "true")
	if got := d.must("settle", "explain", "aws:kms/key:Key"); strings.Contains(got, hint) {
		t.Errorf("of a stack that asks for marks it says\n%s", got)
	}
	if got := d.must("settle", "explain", "aws:index/vpc:Vpc"); !strings.Contains(got, "its plugin knows") {
		t.Errorf("of a type that is made at run time it says\n%s", got)
	}
	if got := d.must("settle", "explain", "own:a:B"); !strings.Contains(got, "Neither deployctl:settle nor the") {
		t.Errorf("of a type without a rule it says\n%s", got)
	}
}

func TestAKeyThatNothingReadsIsSaidWhenItIsSet(t *testing.T) {
	d := inProject(t)
	for _, args := range [][]string{
		{"config", "set", "deployctl:mrak", "true"}, {"config", "set-all", "--plaintext", "pulumi:tgas=x"},
	} {
		if got := d.run(args...); got.code != 0 || !strings.Contains(got.err, "means nothing to deployctl; it knows ") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	for _, key := range []string{"deployctl:look", "deployctl:s3Endpoint", "shop:mrak", "pulumi:tags", "aws:region"} {
		if got := d.run("config", "set", key, "true"); strings.Contains(got.err, "means nothing") {
			t.Errorf("%s: %+v", key, got)
		}
	}
	d.refused(2, `true or false, not "yess"`, "config", "set", "deployctl:mark", "yess")
	d.refused(2, "must be JSON like", "config", "set", "deployctl:retry", "five")
}

func TestASettleRuleThatIsWrongIsNotSet(t *testing.T) {
	d := inProject(t)
	d.must("config", "set", "deployctl:settle", `{"a:b:C": {"read": "${name}"}}`)
	for _, args := range [][]string{
		{"config", "set", "deployctl:settle", `{"a:b:C": {"read": "${name"}}`},
		{"config", "set-all", "--plaintext", `deployctl:settle={"a:b:C": {"read": "${name"}}`},
	} {
		d.refused(2, "a:b:C: read: character 1", args...)
	}
	d.refused(2, "line 1, column", "config", "set", "deployctl:settle", `{"a:b:C": }`)
	d.refused(2, "no secret", "config", "set", "--secret", "deployctl:settle", `{}`)
	if got := d.must("config", "get", "deployctl:settle"); !strings.Contains(got, "${name}") {
		t.Errorf("it is now %s", got)
	}
}

func TestASettleRuleIsTriedByAPreviewThatReads(t *testing.T) {
	d := topicDesk(t)
	var asked deployments.UpdateRequest
	d.service.Play = func(r deployments.UpdateRequest) memory.Script {
		asked = r
		return memory.Script{Status: "succeeded"}
	}
	d.must("settle", "try", "events")
	if asked.Kind != engine.KindRefresh || !asked.DryRun || !asked.TrySettle || !slices.Equal(asked.Targets,
		[]string{aTopic}) {
		t.Errorf("it asked for %+v", asked)
	}
}
