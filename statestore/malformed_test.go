package statestore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// malformedStates is how many deployments are made malformed, each from the seed of its number.
const malformedStates = 1000

// strange are values that stand where another one belongs.
var strange = []string{
	`null`, `true`, `""`, `"\u0000"`, `"\u001b[2J"`, `"a"`, `"a:b"`, `"a::b"`, `"a:b:c"`, `"pulumi:providers:"`,
	`"pulumi:pulumi:Stack"`,
	`0`, `-1`, `3.5`, `1e308`, `1e999`, `99999999999999999999`, `[]`, `{}`, `[null]`, `[""]`, `[[[[[]]]]]`, `{"":""}`,
	`{"V":1}`,
	`"urn:pulumi:dev::web::a:b:C::d"`, `"urn:pulumi:other::web::a:b:C::d"`, `"urn:pulumi:::::::"`,
	`"urn:pulumi:dev::web::a:b::"`, `"urn:"`,
	`"urn:pulumi:dev::web::pulumi:providers:cloud::default::"`, `"repairing"`, `"creating"`,
	`"04da6b54-80e4-46f7-96ec-b56ff0331ba9"`,
	`{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270"}`,
	`{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","plaintext":"{"}`,
	`{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","ciphertext":"v1:x:y"}`,
	`{"4dabf18193072939515e22adb298388d":"5cf8f73096256a8f31e491e813e4eb8e","urn":"x","id":{"V":{}}}`,
	`{"4dabf18193072939515e22adb298388d":"c44067f5952c0a294b673a41bacd8c17","text":7}`,
	`{"4dabf18193072939515e22adb298388d":"not known"}`, `{"4dabf18193072939515e22adb298388d":7}`, `"\ud800"`,
	"\"\xff\"",
}

// full is a deployment with something in every field that a state may have.
func full(t *testing.T) []byte {
	t.Helper()
	var d struct {
		Version    int            `json:"version"`
		Features   []string       `json:"features"`
		Deployment map[string]any `json:"deployment"`
	}
	data, err := json.Marshal(golden(t, "stock_plain.json"))
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	list := d.Deployment["resources"].([]any)
	last := maps.Clone(list[len(list)-1].(map[string]any))
	last["urn"], last["type"], last["custom"], last["id"] = "urn:pulumi:dev::web::cloud:index:Thing::being-made",
		"cloud:index:Thing", true, "i"
	last["customTimeouts"] = map[string]any{"create": 60}
	d.Deployment["pending_operations"] = []any{map[string]any{"type": "updating", "resource": last}}
	data, err = json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// malform changes a deployment in one to three places, or its bytes.
func malform(r *rand.Rand, data []byte) []byte {
	if r.IntN(10) == 0 {
		out := bytes.Clone(data)
		for range 1 + r.IntN(3) {
			out[r.IntN(len(out))] ^= byte(1 << r.IntN(8))
		}
		return out[:len(out)-r.IntN(2)*r.IntN(len(out))]
	}
	var tree any
	if json.Unmarshal(data, &tree) != nil {
		return data
	}
	var put []string
	for range 1 + r.IntN(3) {
		tree = change(r, tree, &put)
	}
	out, err := json.Marshal(tree)
	if err != nil {
		return data
	}
	for i, value := range put { // what no Go value can say
		out = bytes.ReplaceAll(out, fmt.Appendf(nil, `"<%d>"`, i), []byte(value))
	}
	return out
}

// change goes down to a random place, and does something to what is there.
func change(r *rand.Rand, node any, put *[]string) any {
	switch x := node.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(x))
		if len(keys) == 0 || r.IntN(12) == 0 {
			break
		}
		key := keys[r.IntN(len(keys))]
		if r.IntN(12) == 0 {
			delete(x, key)
			return x
		}
		x[key] = change(r, x[key], put)
		return x
	case []any:
		if len(x) == 0 || r.IntN(12) == 0 {
			break
		}
		i, j := r.IntN(len(x)), r.IntN(len(x))
		switch r.IntN(12) {
		case 0:
			return slices.Delete(x, i, i+1)
		case 1:
			return append(x, x[i])
		case 2:
			x[i], x[j] = x[j], x[i]
		default:
			x[i] = change(r, x[i], put)
		}
		return x
	}
	*put = append(*put, strange[r.IntN(len(strange))])
	return fmt.Sprintf("<%d>", len(*put)-1)
}

func TestAMalformedDeploymentIsRejectedOrKeptWhole(t *testing.T) {
	good := full(t)
	if !carried(t, 0, good) {
		t.Fatal("what is not malformed is refused")
	}
	refused := 0
	for seed := range uint64(malformedStates) {
		data := malform(rand.New(rand.NewPCG(seed, 15)), good)
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("seed %d: %v\n%s", seed, p, data)
				}
			}()
			if !carried(t, seed, data) {
				refused++
			}
		}()
	}
	t.Logf("%d of %d were refused", refused, malformedStates)
	if refused < malformedStates/4 || refused == malformedStates {
		t.Errorf("%d of %d were refused: they are not malformed, or nothing is taken any more", refused,
			malformedStates)
	}
}

// carried imports a deployment, and reports whether it was taken. One that was comes back whole and can be updated.
func carried(t *testing.T, seed uint64, data []byte) bool {
	var d apitype.UntypedDeployment
	if json.Unmarshal(data, &d) != nil {
		return false
	}
	s := newStack(t, &bucket.Memory{})
	x := statestore.Exchange{Stack: dev, Forget: true}
	version, err := s.Import(t.Context(), x, d)
	if err != nil {
		if h, headErr := s.Head(t.Context(), dev); headErr != nil || h.Version != 0 || h.Active != nil {
			t.Errorf("seed %d: refused with %v, and the stack is at %+v (%v)", seed, err, h, headErr)
		}
		if code := deployments.CodeOf(err); code != deployments.CodeInvalid ||
			strings.ContainsAny(err.Error(), "\x00\x1b") {
			t.Errorf("seed %d: %s: %q", seed, code, err)
		}
		return false
	}
	c, err := s.Checkpoint(t.Context(), dev, version, x.Secrets)
	if err != nil {
		t.Errorf("seed %d: taken, and cannot be loaded: %v", seed, err)
		return true
	}
	var fields struct{ Resources, Pending_operations []any }
	if len(d.Deployment) == 0 {
		d.Deployment = []byte("null")
	}
	if err := json.Unmarshal(d.Deployment, &fields); err != nil || len(fields.Resources) != len(c.States()) ||
		len(fields.Pending_operations) != len(c.Pending()) {
		t.Errorf("seed %d: of %d resources and %d operations there are %d and %d (%v)", seed,
			len(fields.Resources), len(fields.Pending_operations), len(c.States()), len(c.Pending()), err)
	}
	updated(t, seed, c)
	if _, err := s.Export(t.Context(), x, 0, true); err != nil {
		t.Errorf("seed %d: taken, and cannot be exported: %v", seed, err)
	}
	return true
}

// updated destroys what a checkpoint holds, as an update does, and reads all its values.
func updated(t *testing.T, seed uint64, c *statestore.Checkpoint) {
	for _, state := range slices.Concat(c.States(), pendingStates(c)) {
		_, _ = state.URN.Name(), deployments.Retries{}.Of(state.Type)
		for _, bag := range []engine.Bag{state.Inputs, state.Outputs, state.Trigger} {
			if bag.Ref == "" {
				continue
			}
			if _, err := c.Values(bag.Ref); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
	run := engine.New(engine.Goal{Kind: engine.KindDestroy, Version: 2, Organization: dev.Organization,
		Project: dev.Project, Stack: dev.Stack,
		Parallel: 4}, c.States(), c.Pending())
	for range 10 * (len(c.States()) + len(c.Pending()) + 1) {
		ready := run.Ready()
		for _, command := range ready.Start {
			switch command := command.(type) {
			case engine.Step:
				run.Handle(engine.StepFinished{Op: command.Op, Outcome: engine.OutcomeDone})
			case engine.Settle:
				run.Handle(engine.StepFinished{Op: command.Step.Op, Outcome: engine.OutcomeDone})
			}
		}
		if ready.Empty() {
			break
		}
	}
	if _, ended := run.Result(); !ended {
		t.Errorf("seed %d: the update does not end", seed)
	}
}

func pendingStates(c *statestore.Checkpoint) []engine.State {
	var states []engine.State
	for _, operation := range c.Pending() {
		states = append(states, operation.State)
	}
	return states
}
