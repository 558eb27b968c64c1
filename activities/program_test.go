package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

const twoThings = `
steps:
  - register: first
    type: toy:index:Thing
    properties: {name: one, size: "${config.size}"}
  - register: second
    type: toy:index:Thing
    properties: {size: 2, note: "${first.name}", secret: !secret hush}
  - print: all is registered
outputs:
  name: ${second.name}
`

func TestAProgramIsHostedPlannedAndSaved(t *testing.T) {
	h := newHouse(t)
	request := deployments.UpdateRequest{
		Bundle: h.upload(scenarioProject(twoThings)),
		Config: map[string]deployments.ConfigValue{"test:size": {Value: "5"}, "toy:region": {Value: "north"}},
	}
	claimed := h.claim(request)
	if claimed.Worker != "worker-1" || !claimed.HasProgram || claimed.Base != 0 {
		t.Fatalf("%+v", claimed)
	}
	run, out, err := h.play(claimed, nil)
	if err != nil || out.Error != "" || out.Lost {
		t.Fatalf("%+v %v", out, err)
	}
	if exited := run.exited(); exited == nil || exited.Error != "" {
		t.Errorf("exited %+v", exited)
	}
	first, second := run.find("first"), run.find("second")
	if first.ID != "one" || h.values(first.Outputs)["region"].StringValue() != "north" {
		t.Errorf("first: %+v %v", first, h.values(first.Outputs))
	}
	if !slices.Contains(second.Dependencies, first.URN) || len(second.PropertyDependencies) != 3 ||
		!slices.Contains(second.PropertyDependencies[0].URNs, first.URN) {
		t.Errorf("dependencies: %v %v", second.Dependencies, second.PropertyDependencies)
	}
	if !h.values(second.Outputs)["secret"].IsSecret() {
		t.Errorf("the output of a secret input is plain: %v", h.values(second.Outputs))
	}
	provider := run.find("default")
	if provider.Type != "pulumi:providers:toy" || provider.ID == "" {
		t.Errorf("default provider: %+v", provider)
	}

	info := h.settle(run)
	if info.Status != "succeeded" || info.Resources != len(run.states) {
		t.Errorf("%+v", info)
	}
	if again := h.settle(run); again.Ended != info.Ended {
		t.Errorf("settled twice: %+v", again)
	}
	if text := h.log(); !strings.Contains(text, "all is registered") || strings.Contains(text, "hush") {
		t.Errorf("the log is %s", text)
	}

	// The next update starts from what was stored, and finds nothing to do.
	claimed = h.claim(request)
	headers, err := call[deployments.Headers](h, h.acts.ReadHeaders, deployments.HeadersInput{Update: h.update,
		Base: claimed.Base})
	if err != nil || claimed.Base != 1 {
		t.Fatalf("base %d: %v", claimed.Base, err)
	}
	before := h.effects()
	run, out, err = h.play(claimed, headers.States)
	if err != nil || out.Error != "" {
		t.Fatalf("%+v %v", out, err)
	}
	if !slices.Equal(before, h.effects()) || len(before) != 2 {
		t.Errorf("effects: %v, before: %v", h.effects(), before)
	}

	// A change of one property causes one update.
	request.Config["test:size"] = deployments.ConfigValue{Value: "6"}
	release(h)
	claimed = h.reclaim(request)
	if _, out, err = h.play(claimed, headers.States); err != nil || out.Error != "" {
		t.Fatalf("%+v %v", out, err)
	}
	if effects := h.effects(); len(effects) != 3 || effects[2] != "write:one" {
		t.Errorf("effects: %v", effects)
	}
	_ = run
}

func TestAPreviewChangesNothingAndKnowsWhatItCan(t *testing.T) {
	h := newHouse(t)
	claimed := h.claim(deployments.UpdateRequest{
		DryRun: true, Bundle: h.upload(scenarioProject(twoThings)),
		Config: map[string]deployments.ConfigValue{"test:size": {Value: "5"}},
	})
	run, out, err := h.play(claimed, nil)
	if err != nil || out.Error != "" {
		t.Fatalf("%+v %v", out, err)
	}
	if len(h.effects()) != 0 {
		t.Errorf("effects: %v", h.effects())
	}
	if outputs := h.values(run.find("first").Outputs); !outputs["name"].DeepEquals(resource.NewProperty("one")) {
		t.Errorf("%v", outputs)
	}
}

func TestTheEndsOfAProgram(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		check  func(*testing.T, deployments.ProgramOutput, *engine.ProgramExited)
		told   string // why the program does not get what it asked for
	}{
		"a program that throws has failed": {"steps: [{throw: out of cheese}]",
			func(t *testing.T, out deployments.ProgramOutput, exited *engine.ProgramExited) {
				if out.Lost || exited == nil || !strings.Contains(exited.Error, "out of cheese") || exited.Bailed {
					t.Errorf("%+v %+v", out, exited)
				}
			}, ""},
		"a program that reported its error has bailed": {"steps: [{fail: out of bread}]",
			func(t *testing.T, out deployments.ProgramOutput, exited *engine.ProgramExited) {
				if out.Lost || exited == nil || !exited.Bailed {
					t.Errorf("%+v %+v", out, exited)
				}
			}, ""},
		"a program that is killed is lost": {"steps: [{kill: true}]",
			func(t *testing.T, out deployments.ProgramOutput, exited *engine.ProgramExited) {
				if !out.Lost || exited != nil {
					t.Errorf("%+v %+v", out, exited)
				}
			}, ""},
		"a resource that fails its check fails the program": {
			"steps: [{register: bad, type: 'toy:index:Thing', properties: {size: -1}}]",
			func(t *testing.T, out deployments.ProgramOutput, exited *engine.ProgramExited) {
				if exited == nil || !exited.Bailed {
					t.Errorf("%+v %+v", out, exited)
				}
			}, "must not be negative"},
		"a provider that is not installed fails the program with a hint": {
			"steps: [{register: bad, type: 'nosuch:index:Thing'}]",
			func(t *testing.T, out deployments.ProgramOutput, exited *engine.ProgramExited) {
				if exited == nil || !exited.Bailed {
					t.Errorf("%+v %+v", out, exited)
				}
			}, "deployctl plugin install resource nosuch"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			run, out, err := h.play(h.claim(deployments.UpdateRequest{Bundle: h.upload(scenarioProject(c.script))}),
				nil)
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, out, run.exited())
			if told := run.told(); !strings.Contains(told, c.told) || c.told == "" && told != "" {
				t.Errorf("the update is told %q", told)
			}
		})
	}
}

func TestAProgramIsLeftToAnotherWorkerWhenItsOwnIsAskedToStop(t *testing.T) {
	h := newHouse(t)
	h.stop = make(chan struct{})
	script := "steps: [{register: first, type: 'toy:index:Thing', properties: {name: n, do: hang}}]"
	claimed := h.claim(deployments.UpdateRequest{Bundle: h.upload(scenarioProject(script))})
	ended := make(chan error, 1)
	go func() {
		_, _, err := h.play(claimed, nil)
		ended <- err
	}()
	h.awaitHang()
	close(h.stop)
	// although the step that it waits for has not ended
	if err := <-ended; errorType(err) != deployments.ErrorNotStarted {
		t.Error(err)
	}
	if err := h.endHang(); err != nil { // lets the step end
		t.Fatal(err)
	}
}
