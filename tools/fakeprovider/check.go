package fakeprovider

import (
	"context"
	"errors"
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
	k, err := f.kindOf(req.Urn)
	if err != nil {
		return p.CheckResponse{}, err
	}
	in := map[string]property.Value{}
	for name, v := range req.Inputs.All {
		if !v.IsNull() {
			in[name] = v.WithDependencies(nil)
		}
	}
	failures := k.strangers(in)
	fail := func(name, reason string) {
		failures = append(failures, p.CheckFailure{Property: name, Reason: reason})
	}
	for _, d := range k.inputs() {
		v, given := in[d.name]
		switch {
		case given:
			if reason := d.wrong(v); reason != "" {
				fail(d.name, reason)
			}
			in[d.name] = v.WithSecret(v.Secret() || d.secret)
		case d.fallback != nil:
			in[d.name] = fromJSON(d.fallback)
		case d.name == "name":
			name, err := k.name(ctx, req)
			if err != nil {
				fail(d.name, err.Error())
				continue
			}
			in[d.name] = property.New(name)
		}
	}
	return p.CheckResponse{Inputs: property.NewMap(in), Failures: failures}, nil
}

// strangers are the failures of the inputs that the kind does not have, in the order of their names.
func (k kind) strangers(in map[string]property.Value) (failures []p.CheckFailure) {
	declared := k.inputs()
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.ContainsFunc(declared, func(d declaration) bool { return d.name == name }) {
			failures = append(failures, p.CheckFailure{Property: name, Reason: "there is no such property"})
		}
	}
	return failures
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
		return "", errors.New("is required")
	}
	if old := text(req.State.Get("name")); old != "" {
		return old, nil
	}
	check, _ := ctx.Value(seedKey{}).(*rpc.CheckRequest)
	if a := check.GetAutonaming(); a != nil {
		if a.Mode == rpc.CheckRequest_AutonamingOptions_DISABLE {
			return "", errors.New("is required, as autonaming is disabled")
		}
		return a.ProposedName, nil
	}
	return resource.NewUniqueName(check.GetRandomSeed(), req.Urn.Name()+"-", 7, 0, nil)
}
