package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"gopkg.in/yaml.v3"
)

// player plays one script once. Steps are played in order by whoever calls play; what a step starts goes on in a
// goroutine of its own, and the steps that refer to it wait for it.
type player struct {
	ctx     context.Context
	monitor rpc.ResourceMonitorClient
	engine  rpc.EngineClient
	run     *rpc.RunRequest
	dir     string // the program's
	root    string // the stack's URN
	outputs bool   // the monitor takes output values

	callbacks callbacks

	mu         sync.Mutex
	things     map[string]*made
	transforms map[string]*rpc.Callback // of resources, by name
	packages   map[string]string        // references of packages, by name
	started    sync.WaitGroup
	failure    error // the first; no step is played after it
}

// made is what a step made, by the name under which other steps refer to it. All but name and done are set when done is
// closed.
type made struct {
	name      string
	done      chan struct{}
	err       error
	urn, id   string // of a resource
	state     resource.PropertyMap
	custom    bool
	unknown   bool                // nothing is known about it in this preview
	depends   map[string][]string // by property, for a remote component
	deps      []string            // for what is not a resource
	providers map[string]string   // those that children inherit, by package
}

// errSkipped is the fate of a step that refers to something that failed: the failure is reported once, there.
var errSkipped = errors.New("skipped")

// play plays steps one after the other.
func (p *player) play(steps []yaml.Node) error {
	for i := range steps {
		if err := p.failed(); err != nil {
			return err
		}
		if err := p.step(&steps[i]); err != nil {
			return p.fail(err)
		}
	}
	return p.failed()
}

// step plays one step. One that refers to what failed is left out: that failure is reported where it arose.
func (p *player) step(node *yaml.Node) error {
	a, g, err := parse(node)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	play, err := p.holds(g.When)
	if play && err == nil {
		play, err = p.first(g.Once)
	}
	if play && err == nil {
		err = a.play(p)
	}
	if errors.Is(err, errSkipped) {
		return nil
	}
	return err
}

// first says whether a once-file was not there, and makes it.
func (p *player) first(path string) (bool, error) {
	if path == "" {
		return true, nil
	}
	path, err := p.text(path)
	if err != nil {
		return false, err
	}
	f, err := os.OpenFile(p.file(path), os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// holds evaluates a condition: A == B, A != B, or A, which holds unless it is empty or false. "" holds.
func (p *player) holds(condition string) (bool, error) {
	if condition == "" {
		return true, nil
	}
	left, right, equal := strings.Cut(condition, " == ")
	unequal := false
	if !equal {
		left, right, unequal = strings.Cut(condition, " != ")
	}
	a, err := p.text(strings.TrimSpace(left))
	if err != nil {
		return false, err
	}
	b, err := p.text(strings.TrimSpace(right))
	switch {
	case equal:
		return a == b, err
	case unequal:
		return a != b, err
	}
	return a != "" && a != "false", err
}

// start gives a name to what work makes, and lets it work on its own.
func (p *player) start(name string, work func(*made) error) error {
	name, err := p.text(name)
	if err != nil {
		return err
	}
	m := &made{name: name, done: make(chan struct{})}
	p.mu.Lock()
	_, taken := p.things[name]
	if !taken {
		p.things[name] = m
	}
	p.mu.Unlock()
	if taken {
		return fmt.Errorf("there are two steps named %s", name)
	}
	p.started.Go(func() {
		defer close(m.done)
		if m.err = work(m); m.err != nil && !errors.Is(m.err, errSkipped) {
			_ = p.fail(fmt.Errorf("%s: %w", name, m.err))
		}
	})
	return nil
}

// await waits until what a name stands for is made.
func (p *player) await(name string) (*made, error) {
	p.mu.Lock()
	m := p.things[name]
	p.mu.Unlock()
	if m == nil {
		return nil, fmt.Errorf("there is no earlier step named %s", name)
	}
	select {
	case <-m.done:
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
	if m.err != nil {
		return nil, errSkipped
	}
	return m, nil
}

// fail records the first failure and gives it back.
func (p *player) fail(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
	return p.failure
}

func (p *player) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// takesOutputs asks whether the monitor takes output values.
func (p *player) takesOutputs() (bool, error) {
	info, err := p.monitor.GetDeploymentInfo(p.ctx, &emptypb.Empty{})
	if status.Code(err) == codes.Unimplemented {
		feature, err := p.monitor.SupportsFeature(p.ctx, &rpc.SupportsFeatureRequest{Id: "outputValues"})
		return feature.GetHasSupport(), err
	}
	return slices.Contains(info.GetSupportedFeatures(),
		rpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES), err
}

// begin asks what the monitor can do and registers the stack.
func (p *player) begin(root string) error {
	var err error
	if p.outputs, err = p.takesOutputs(); err != nil {
		return err
	}
	stack, err := p.monitor.RegisterResource(p.ctx, &rpc.RegisterResourceRequest{
		Type: string(resource.RootStackType), Name: cmp.Or(root, p.run.GetProject()+"-"+p.run.GetStack()),
		AcceptSecrets: true, AcceptResources: true, AliasSpecs: true, SupportsResultReporting: true,
	})
	if err != nil {
		return err
	}
	p.root = stack.GetUrn()
	_, err = p.engine.SetRootResource(p.ctx, &rpc.SetRootResourceRequest{Urn: p.root})
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	return err
}

// end waits for everything, sets the stack's outputs and then waits until the engine is done with the program.
func (p *player) end(values map[string]yaml.Node) error {
	p.started.Wait()
	if err := p.failed(); err != nil {
		return err
	}
	if err := p.registerOutputs(p.root, values); err != nil {
		return err
	}
	_, err := p.monitor.SignalAndWaitForShutdown(p.ctx, &emptypb.Empty{})
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	return err
}

// lookup follows a path into a resource's urn, id and outputs or into a result.
func (m *made) lookup(path resource.PropertyPath, preview bool) (resource.PropertyValue, error) {
	missing := resource.PropertyValue{}
	if preview || m.unknown {
		missing = resource.MakeComputed(resource.NewProperty(""))
	}
	own, deps := resource.PropertyMap{}, m.deps
	maps.Copy(own, m.state)
	if m.urn != "" {
		own["urn"], deps = resource.NewProperty(m.urn), []string{m.urn}
		if m.id != "" {
			own["id"] = resource.NewProperty(m.id)
		} else if m.custom {
			own["id"] = missing
		}
	}
	if len(path) > 0 {
		if by, ok := m.depends[fmt.Sprint(path[0])]; ok {
			deps = by
		}
	}
	out := descend(resource.NewProperty(own), path, missing)
	for _, d := range deps {
		out.Dependencies = append(out.Dependencies, urn.URN(d))
	}
	return fold(out), nil
}

// marshal is for bags that go to the monitor.
func marshal(keepOutputs bool) plugin.MarshalOptions {
	return plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, KeepResources: true,
		KeepOutputValues: keepOutputs}
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
