package step

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// A resource that is found belongs to this create if something shows it: one of the inputs by which it was found was
// generated for the create, it bears the create's mark, or it was not there before.

// suffix ends the names that providers generate: hexadecimal digits, 7 or 8 as they are asked.
var suffix = regexp.MustCompile(`^-?[0-9a-f]{7,8}$`)

// defaultsKey is where bridged providers note which inputs they have set.
const defaultsKey = "__defaults"

// seeded reports whether one of the inputs by which the rule finds the resource was generated for this create. Then the
// name belongs to nothing else.
func (at *attempt) seeded(
	ctx context.Context, p *pluginhost.Provider, f *lookup.Finder, declared, inputs resource.PropertyMap,
) (bool, error) {
	about := fmt.Sprint(f.Digest(), f.Proof, f.Variables())
	if is, known := at.bySeed[about]; known {
		return is, nil
	}
	is, err := at.generatedInput(ctx, p, f, declared, inputs)
	if err != nil {
		return false, err
	}
	if at.bySeed == nil {
		at.bySeed = map[string]bool{}
	}
	at.bySeed[about] = is
	return is, nil
}

// generatedInput is seeded, found out by asking the provider.
func (at *attempt) generatedInput(
	ctx context.Context, p *pluginhost.Provider, f *lookup.Finder, declared, inputs resource.PropertyMap,
) (bool, error) {
	if !f.Accepts(settlerule.Seed) {
		return false, nil
	}
	variables := f.Variables()
	for _, v := range variables {
		if v.Origin != settlerule.Input {
			continue
		}
		value := settlerule.Text(inputs, v.Path)
		given := at.step.Check && settlerule.Text(declared, v.Path) != ""
		switch {
		case value == "" || given && len(at.step.Seed) > 0:
		case len(at.step.Seed) == 0:
			if at.generated(v.Path, value, declared, len(variables) == 1) {
				return true, nil
			}
		default:
			if ok, err := at.fromSeed(ctx, p, v.Path, value, declared); ok || err != nil {
				return ok, err
			}
		}
	}
	return false, nil
}

// makesAgain reports whether Check has the same inputs each time, as far as the rule asks for them: some providers make
// up names, whatever the seed is, and which one was sent is then not known.
func (at *attempt) makesAgain(
	ctx context.Context, p *pluginhost.Provider, f *lookup.Finder, inputs resource.PropertyMap,
) (bool, error) {
	if !at.step.Check {
		return true, nil
	}
	_, again, err := at.checked(ctx, p)
	if err != nil {
		return false, err
	}
	for _, v := range f.Variables() {
		if v.Origin == settlerule.Input && settlerule.Text(again, v.Path) != settlerule.Text(inputs, v.Path) {
			return false, nil
		}
	}
	return true, nil
}

// leastRandom is how many bits of a value must be random, so that it can be nobody else's: four hexadecimal digits.
const leastRandom = 16

// otherSeeds are with how many other seeds Check is asked: so many that no random character is the same with all.
const otherSeeds = 3

// fromSeed reports whether Check generates an input from the seed: asked without the input it answers with the same
// value, and with other seeds it answers with other ones, which differ in so much that nobody else gets the same by
// chance. What is only a default is not generated.
func (at *attempt) fromSeed(
	ctx context.Context, p *pluginhost.Provider, path resource.PropertyPath, value string, declared resource.PropertyMap,
) (bool, error) {
	without := bags.Bare(resource.NewProperty(declared))
	delete(without.ObjectValue(), defaultsKey)
	if _, given := path.Get(without); given && !path.Delete(without) {
		return false, nil
	}
	values := []string{value}
	for seed := at.step.Seed; len(values) <= 1+otherSeeds; {
		resp, err := at.checkWith(ctx, p, without.ObjectValue(), seed)
		switch {
		case err != nil && hosted.IsTransient(err):
			return false, err
		case err != nil || len(resp.Failures) > 0: // it must be given
			return false, nil
		}
		got := settlerule.Text(resp.Properties, path)
		if first := len(values) == 1; got == "" || (got == value) != first {
			return false, nil
		}
		values = append(values, got)
		other := sha256.Sum256(seed)
		seed = other[:]
	}
	return randomBits(values) >= leastRandom, nil
}

// alphabets are what random characters may be of, with the bits of one; the smallest first.
var alphabets = []struct {
	characters string
	bits       float64
}{{"0123456789", 3.3}, {"0123456789abcdef", 4}, {"abcdefghijklmnopqrstuvwxyz0123456789", 5.1}}

// randomBits estimates how many bits of values are random that were generated in the same way from different seeds: of
// each character in which they differ, what its alphabet allows.
func randomBits(values []string) float64 {
	shortest := len(slices.MinFunc(values, func(a, b string) int { return len(a) - len(b) }))
	at := func(i int) (all string) {
		for _, v := range values {
			all += string(v[i])
		}
		return all
	}
	varying, number := "", 0
	for i := range shortest {
		if all := at(i); strings.Trim(all, all[:1]) != "" {
			varying, number = varying+strings.ToLower(all), number+1
		}
	}
	for _, a := range alphabets {
		if strings.Trim(varying, a.characters) == "" {
			return float64(number) * a.bits
		}
	}
	return float64(number) * alphabets[len(alphabets)-1].bits
}

// checkWith checks inputs with a seed.
func (at *attempt) checkWith(
	ctx context.Context, p *pluginhost.Provider, news resource.PropertyMap, seed []byte,
) (plugin.CheckResponse, error) {
	u := at.step.URN
	return pluginhost.Await(ctx, func() (plugin.CheckResponse, error) {
		return p.Check(ctx, plugin.CheckRequest{
			URN: u, Name: u.Name(), Type: u.Type(), News: news, RandomSeed: seed,
			Autonaming: at.session.names.Propose(u, seed),
		})
	})
}

// generated reports whether an input was generated for a create that another engine began: the stock CLI stores its
// inputs as they were checked, and no seed. Providers that are bridged say which properties they have set, also by
// constants: alone says that no other input makes the id. Of other providers, the name itself tells.
func (at *attempt) generated(path resource.PropertyPath, value string, inputs resource.PropertyMap, alone bool) bool {
	rest, ok := strings.CutPrefix(value, at.step.URN.Name())
	named := ok && suffix.MatchString(rest)
	if set := inputs[defaultsKey]; set.IsArray() && len(path) == 1 {
		return (alone || named) && slices.ContainsFunc(set.ArrayValue(), func(v resource.PropertyValue) bool {
			return v.IsString() && v.StringValue() == path[0]
		})
	}
	return named
}

// marked reports whether what was found bears the mark of this create.
func (at *attempt) marked(f *lookup.Finder, found plugin.ReadResponse, inputs resource.PropertyMap) bool {
	mark := at.markIn(f.Place, inputs)
	return mark != "" && f.Accepts(settlerule.ByMark) &&
		(f.Place.Get(found.Outputs) == mark || f.Place.Get(found.Inputs) == mark)
}
