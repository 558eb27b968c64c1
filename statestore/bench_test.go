package statestore

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

var stackName = deployments.StackName{Organization: "organization", Project: "web", Stack: "dev"}

// newStore makes a store in memory with an empty stack.
func newStore(tb testing.TB) *Store {
	tb.Helper()
	s, err := New(&bucket.Memory{}, Options{Master: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.CreateStack(tb.Context(), stackName, nil); err != nil {
		tb.Fatal(err)
	}
	return s
}

func update(n int) deployments.UpdateName {
	return deployments.UpdateName{StackName: stackName, Version: fmt.Sprint(n)}
}

const providerURN = urn.URN("urn:pulumi:dev::web::pulumi:providers:cloud::default")

// providerState is the provider of all resources of thing.
func providerState(op int) engine.State {
	return engine.State{Key: engine.Key(fmt.Sprintf("o%d", op)), URN: providerURN, Type: "pulumi:providers:cloud",
		Custom: true, ID: "p-1"}
}

// thing is the state of a resource, with a secret among its values.
func thing(tb testing.TB, c *bags.Codec, op, size int) engine.State {
	tb.Helper()
	name := fmt.Sprintf("thing-%d", op)
	in := resource.PropertyMap{
		"name":    resource.NewProperty(name),
		"content": resource.NewProperty(strings.Repeat("lorem ipsum ", size/12)),
		"secret":  resource.MakeSecret(resource.NewProperty("hush " + name)),
		"tags": resource.NewProperty(resource.PropertyMap{"a": resource.NewProperty("b"),
			"n": resource.NewProperty(float64(op))}),
	}
	out := in.Copy()
	out["arn"] = resource.NewProperty("arn:cloud:thing:" + name)
	s := engine.State{
		Key: engine.Key(fmt.Sprintf("o%d", op)), URN: urn.URN("urn:pulumi:dev::web::cloud:index:Thing::" + name),
		Type: "cloud:index:Thing", Custom: true, ID: "id-" + name, Provider: string(providerURN) + "::p-1",
		PropertyDependencies: []engine.PropertyDependency{{Property: "content", URNs: []urn.URN{providerURN}}},
		Dependencies:         []urn.URN{providerURN}, Created: "2024-01-02T03:04:05Z", Modified: "2024-01-02T03:04:05Z",
	}
	var err error
	if s.Inputs, err = c.Encode(tb.Context(), in); err != nil {
		tb.Fatal(err)
	}
	if s.Outputs, err = c.Encode(tb.Context(), out); err != nil {
		tb.Fatal(err)
	}
	return s
}

// finish carries out an update that has these deltas.
func finish(tb testing.TB, s *Store, base, version int, deltas []engine.Delta) Written {
	tb.Helper()
	u := update(version)
	if _, err := s.Claim(tb.Context(), Claimant{Update: u, Writer: "w"}); err != nil {
		tb.Fatal(err)
	}
	if err := s.Updates.SaveDeltas(tb.Context(), u, 1, deltas); err != nil {
		tb.Fatal(err)
	}
	w, err := s.Finish(tb.Context(), Finish{Scope: Scope{Update: u, Base: base}, Saves: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// fill makes version 1 of the stack, with n things.
func fill(tb testing.TB, s *Store, n, size int) {
	tb.Helper()
	c, err := s.Bags(tb.Context(), Scope{Update: update(1)})
	if err != nil {
		tb.Fatal(err)
	}
	first := providerState(1)
	deltas := []engine.Delta{{Seq: 1, Kind: engine.DeltaPut, State: &first}}
	for i := 2; i <= n+1; i++ {
		st := thing(tb, c, i, size)
		deltas = append(deltas, engine.Delta{Seq: i, Kind: engine.DeltaPut, State: &st})
	}
	finish(tb, s, 0, 1, deltas)
}

// forgetAll empties the cache of checkpoints.
func (s *Store) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = map[string]*cacheEntry{}
	s.cacheOrder = nil
}

func BenchmarkLoadHeadersOf10000(b *testing.B) {
	s := newStore(b)
	fill(b, s, 10_000, 600)
	for b.Loop() {
		s.forgetAll()
		c, err := s.Checkpoint(b.Context(), stackName, 1, deployments.SecretsProvider{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(c.size)/(1<<20), "MB")
	}
}

func BenchmarkCompactOneChangeIn10000(b *testing.B) {
	s := newStore(b)
	fill(b, s, 10_000, 600)
	c, err := s.Bags(b.Context(), Scope{Update: update(2)})
	if err != nil {
		b.Fatal(err)
	}
	base, err := s.Checkpoint(b.Context(), stackName, 1, deployments.SecretsProvider{})
	if err != nil {
		b.Fatal(err)
	}
	version := 2
	for b.Loop() {
		changed := thing(b, c, 5000, 700)
		deltas := []engine.Delta{
			{Seq: 1, Kind: engine.DeltaKeep, First: 0, Count: 4999},
			{Seq: 2, Kind: engine.DeltaPut, State: &changed, Removes: []engine.Key{"b4999"}},
			{Seq: 3, Kind: engine.DeltaKeep, First: 5000, Count: len(base.States()) - 5000},
		}
		w := finish(b, s, 1, version, deltas)
		if w.Resources != 10_001 {
			b.Fatalf("%d resources", w.Resources)
		}
		version++
	}
}
