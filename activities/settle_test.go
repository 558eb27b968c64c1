package activities

import (
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/command"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

func TestALostRunOfACommandIsSettledByItsReadCommand(t *testing.T) {
	const runType = "deployctl:command:Run"
	u := urn.New("dev", "test", "", runType, "run")
	h := newHouse(t)
	h.acts.Builtin = map[string]func() pulumirpc.ResourceProviderServer{"deployctl": func() pulumirpc.ResourceProviderServer {
		return provider.Server(provider.Package{Name: "deployctl", Version: "0.1.0", Modules: []provider.Module{command.Module(h.env)}})
	}}
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	made := filepath.Join(h.world, "made")
	step := func(inputs resource.PropertyMap) engine.Step {
		ref := string(urn.New("dev", "test", "", providers.MakeProviderType("deployctl"), "default")) + "::1234"
		return engine.Step{
			Op: 5, Kind: engine.StepCreate, URN: u, Type: runType, Check: true, Seed: seedOf(u), Provider: &engine.Provider{Ref: ref},
			New: &engine.State{Key: "o5", URN: u, Type: runType, Custom: true, Provider: ref, Inputs: h.bag(inputs)},
		}
	}
	settle := func(s engine.Step) engine.StepFinished {
		t.Helper()
		result, err := call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{Update: h.update, Base: h.base, Settle: engine.Settle{Step: s}})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	create := "echo secret > " + made
	readable := step(resource.PropertyMap{
		"create": resource.MakeSecret(resource.NewProperty(create)), "read": resource.NewProperty("cat " + made),
	})
	if got := settle(readable); got.Outcome != engine.OutcomeAbsent {
		t.Errorf("before it was run: %+v", got)
	}
	if done, err := call[engine.StepFinished](h, h.acts.Step, deployments.StepInput{
		Update: h.update, Base: h.base, Step: readable, Round: 1,
	}); err != nil || done.Outcome != engine.OutcomeDone {
		t.Fatalf("%+v %v", done, err)
	}
	got := settle(readable)
	if got.Outcome != engine.OutcomeDone || got.ID == "" || got.Inputs == nil {
		t.Fatalf("after it was run: %+v", got)
	}
	if out := h.values(got.Outputs)["stdout"]; !out.IsSecret() || out.SecretValue().Element.StringValue() != "secret" {
		t.Errorf("its output is %v", out)
	}
	if got := settle(step(texts("create", create))); got.Outcome != engine.OutcomeUndecidable {
		t.Errorf("without a read command: %+v", got)
	}
}
