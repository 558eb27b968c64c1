package fakeprovider

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// seedKey carries a CheckRequest of the protocol to Check: the framework passes on neither the seed nor the autonaming
// that the engine proposes.
type seedKey struct{}

// Check validates every input and reports all failures at once; then it fills in what the program left out. An input
// that is not known yet is neither.
func (f *fake) Check(ctx context.Context, req p.CheckRequest) (p.CheckResponse, error) {
	k, err := kindOf(req.Urn)
	if err != nil {
		return p.CheckResponse{}, err
	}
	in := map[string]property.Value{}
	for name, v := range req.Inputs.All {
		in[name] = v.WithDependencies(nil)
	}
	var failures []p.CheckFailure
	fail := func(name, reason string, args ...any) {
		failures = append(failures, p.CheckFailure{Property: name, Reason: fmt.Sprintf(reason, args...)})
	}
	declared := k.inputs()
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.ContainsFunc(declared, func(d declaration) bool { return d.name == name }) {
			fail(name, "there is no such property")
		}
	}
	for _, d := range declared {
		if v, given := in[d.name]; !given || v.IsNull() {
			delete(in, d.name)
			if d.fallback != nil {
				in[d.name] = fromJSON(d.fallback)
			}
			continue
		}
		if reason := d.wrong(in[d.name]); reason != "" {
			fail(d.name, "%s", reason)
		}
		if d.secret {
			in[d.name] = in[d.name].WithSecret(true)
		}
	}
	if _, given := in["name"]; !given && k.naming != server {
		name, err := k.name(ctx, req)
		if err != nil {
			fail("name", "%v", err)
		} else {
			in["name"] = property.New(name)
		}
	}
	return p.CheckResponse{Inputs: property.NewMap(in), Failures: failures}, nil
}

// wrong says what is wrong with a value, or "".
func (d declaration) wrong(v property.Value) string {
	if v.IsComputed() {
		return ""
	}
	rightType := map[string]func() bool{
		"integer": v.IsNumber, "string": v.IsString, "boolean": v.IsBool, "array": v.IsArray, "object": v.IsMap,
	}[d.typ]
	switch {
	case !rightType():
		return fmt.Sprintf("must be of type %s", d.typ)
	case d.typ == "integer" && v.AsNumber() != math.Trunc(v.AsNumber()):
		return "must be a whole number"
	case d.typ == "integer" && v.AsNumber() < 0:
		return fmt.Sprintf("must not be negative, but is %v", v.AsNumber())
	case d.name == "name" && v.AsString() == "":
		return "must not be empty"
	case d.name == "zone" && !slices.Contains([]string{"a", "b", "c"}, v.AsString()):
		return fmt.Sprintf("must be one of a, b and c, but is %q", v.AsString())
	}
	return ""
}

// name makes the name that the program did not give: the old one where there is one, else the one that the engine's
// configuration demands, else one made from the engine's seed.
func (k kind) name(ctx context.Context, req p.CheckRequest) (string, error) {
	if k.naming == named {
		return "", fmt.Errorf("is required")
	}
	if old := text(req.State.Get("name")); old != "" {
		return old, nil
	}
	check, _ := ctx.Value(seedKey{}).(*rpc.CheckRequest)
	if a := check.GetAutonaming(); a != nil {
		if a.Mode == rpc.CheckRequest_AutonamingOptions_DISABLE {
			return "", fmt.Errorf("is required, as autonaming is disabled")
		}
		return a.ProposedName, nil
	}
	return resource.NewUniqueName(check.GetRandomSeed(), req.Urn.Name()+"-", 7, 0, nil)
}
