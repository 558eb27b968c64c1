package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// reached is where an update has brought a stack and its cloud, without what chance decides.
type reached struct {
	cloud, state []string
	counts
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// reached reads the cloud and the state.
func (s *stage) reached(ctx context.Context) (r reached, err error) {
	objects, err := s.cloud.Objects(ctx, "")
	if err != nil {
		return r, err
	}
	state, err := s.exported(ctx)
	if err != nil {
		return r, err
	}
	if r.Duplicates, r.Leaks, err = s.stray(ctx, state); err != nil {
		return r, err
	}
	var chance []string
	slices.SortFunc(objects, func(a, b fakecloud.Object) int { return cmp.Compare(len(b.ID), len(a.ID)) })
	for _, o := range objects {
		if o.Foreign {
			continue
		}
		_, name, _ := strings.Cut(o.Owner, "$")
		of := "(" + name + o.Owner[strings.LastIndex(o.Owner, "::")+2:] + ")"
		if chance = append(chance, o.ID, "id"+of); o.Name != "" && o.Name != o.ID {
			chance = append(chance, o.Name, "name"+of)
		}
	}
	plain := strings.NewReplacer(append(chance, "urn:pulumi:"+s.stack+"::", "urn:pulumi:STACK::", project+"-"+s.stack,
		project+"-STACK", s.cloud.URL(), "CLOUD")...)
	tidy := func(v any) string {
		text, _ := json.Marshal(v) // it came from JSON
		return uuid.ReplaceAllString(plain.Replace(string(text)), "UUID")
	}
	for _, o := range objects {
		if o.Foreign {
			continue
		}
		delete(o.Properties, "accessKey")
		r.cloud = append(r.cloud, tidy(o))
	}
	for _, resource := range state.Resources {
		resource.Created, resource.Modified = nil, nil
		resource.SourcePosition, resource.StackTrace = "", nil // of the tool that wrote it
		slices.Sort(resource.Dependencies)
		for _, of := range resource.PropertyDependencies {
			slices.Sort(of)
		}
		delete(resource.Outputs, "accessKey")
		r.state = append(r.state, tidy(resource))
	}
	for _, operation := range state.PendingOperations {
		r.state = append(r.state, "pending "+tidy(operation))
	}
	slices.Sort(r.cloud)
	slices.Sort(r.state)
	return r, nil
}

// exported is the stack's state, secrets in plain text.
func (s *stage) exported(ctx context.Context) (state apitype.DeploymentV3, err error) {
	text, err := s.deployctl(ctx, "stack", "export", "--show-secrets")
	if err != nil {
		return state, err
	}
	return parseState(text)
}

// parseState reads an export. What a command says of a service that is slow to answer comes before it.
func parseState(text string) (state apitype.DeploymentV3, err error) {
	if _, export, found := strings.Cut("\n"+text, "\n{"); found {
		text = "{" + export
	}
	var exported apitype.UntypedDeployment
	if err := json.Unmarshal([]byte(text), &exported); err != nil {
		return state, fmt.Errorf("read the exported stack: %w", err)
	}
	if err := json.Unmarshal(exported.Deployment, &state); err != nil {
		return state, fmt.Errorf("read the exported stack: %w", err)
	}
	return state, nil
}

// stray counts the resources that were created more than once, and the objects that a state does not know.
func (s *stage) stray(ctx context.Context, state apitype.DeploymentV3) (duplicates, leaks int, err error) {
	objects, err := s.cloud.Objects(ctx, "")
	if err != nil {
		return 0, 0, err
	}
	effects, err := s.cloud.Effects(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	known := map[string]bool{}
	for _, resource := range state.Resources {
		known[string(resource.URN)+" "+string(resource.ID)] = true
	}
	for _, o := range objects {
		if !o.Foreign && !known[o.Owner+" "+o.ID] {
			leaks++
		}
	}
	return createdTwice(effects), leaks, nil
}

// createdTwice counts the owners of several objects that were created.
func createdTwice(effects []fakecloud.Effect) (owners int) {
	created := map[string]int{}
	for _, e := range effects {
		if e.Op == fakecloud.Create && !e.Outside {
			if created[e.Owner]++; created[e.Owner] == 2 {
				owners++
			}
		}
	}
	return owners
}

// differs names what is not as in an undisturbed run.
func (r reached) differs(from reached) error {
	for _, part := range []struct {
		what string
		a, b []string
	}{{"cloud", r.cloud, from.cloud}, {"state", r.state, from.state}} {
		if slices.Equal(part.a, part.b) {
			continue
		}
		more, less := without(part.a, part.b), without(part.b, part.a)
		return fmt.Errorf("the %s differs from an undisturbed run's: it has\n  %s\n  and not\n  %s", part.what,
			strings.Join(more[:min(3, len(more))], "\n  "), strings.Join(less[:min(3, len(less))], "\n  "))
	}
	return nil
}

// without returns what a list has more of than another.
func without(a, b []string) (more []string) {
	b = slices.Clone(b)
	for _, s := range a {
		if i := slices.Index(b, s); i >= 0 {
			b = slices.Delete(b, i, i+1)
		} else {
			more = append(more, s)
		}
	}
	return more
}

// variant is a program that seeds share, and what an undisturbed run of it comes to.
type variant struct {
	name, language string
	nodes          []node

	once  sync.Once
	plain reached
	err   error
}

// programSize is how many resources the programs have whose updates are killed or cancelled. It is smaller in
// `make test`.
var programSize = 200

// variants are two graphs in two languages.
var variants = sync.OnceValue(func() (all []*variant) {
	for _, language := range []string{"yaml", "nodejs"} {
		for graphSeed := range uint64(2) {
			all = append(all, &variant{name: fmt.Sprintf("undisturbed-%s-%d", language, graphSeed), language: language,
				nodes: graph(rand.New(rand.NewPCG(graphSeed, 0)), programSize, named, auto, tagged)})
		}
	}
	return all
})

// undisturbed plays the variant once without a disturbance.
func (v *variant) undisturbed(ctx context.Context, w *world) (reached, error) {
	v.once.Do(func() {
		s, err := w.newStage(ctx, v.name, v.language, v.nodes)
		if err != nil {
			v.err = err
			return
		}
		defer s.close()
		if _, v.err = s.deployctl(ctx, "up", "--yes", "--skip-preview"); v.err == nil {
			v.plain, v.err = s.reached(ctx)
		}
	})
	return v.plain, v.err
}
