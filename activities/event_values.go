package activities

import (
	"strings"

	"github.com/deployctl/deployctl/internal/redaction"
	"github.com/deployctl/deployctl/internal/valuediff"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

const (
	// blinded stands in for every secret that people would see.
	blinded = redaction.Blinded
	// otherBlinded stands in for a secret that is not what was at its place before. That is all that is told of it.
	otherBlinded = "[another secret]"
	// unknownText is how the field writes a value that is not known yet.
	unknownText = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
)

// shown gives values as JSON for people: secrets blinded, assets by their hash, unknowns as their sentinel.
func shown(m resource.PropertyMap) map[string]any {
	return blinding.object(m)
}

var blinding viewer = func(*resource.Secret) any { return blinded }

// shownAfter gives values as shown does, beside those that were before: secrets that differ from their counterparts are
// blinded by another text. Counterparts are found as readers of events find them, in lists by the longest common
// subsequence.
func shownAfter(old, now resource.PropertyMap) map[string]any {
	if !old.ContainsSecrets() || !now.ContainsSecrets() || old.DeepEquals(now) {
		return shown(now)
	}
	numbers := map[string]int{}
	numbered := viewer(func(s *resource.Secret) any {
		text := valuediff.OneLine(blinding.value(revealed(s.Element)))
		if _, known := numbers[text]; !known {
			numbers[text] = len(numbers)
		}
		return &secretPlace{Number: numbers[text]}
	})
	is := numbered.object(now)
	for _, c := range valuediff.Diff("", numbered.object(old), is) {
		// Of what comes into a list, it may be out of sight that something else has left it.
		inList := strings.HasSuffix(c.Path, "]") && !strings.HasSuffix(c.Path, `"]`)
		if c.Kind == valuediff.Moved || c.Kind == valuediff.Added && inList || c.Kind == valuediff.Changed &&
			secretsInside(c.Old) {
			eachSecret(c.New, func(p *secretPlace) { p.differs = true })
		}
	}
	return blind(is).(map[string]any)
}

// secretPlace stands for a secret while values are compared. Equal secrets have equal numbers.
type secretPlace struct {
	Number  int
	differs bool
}

func eachSecret(value any, do func(*secretPlace)) {
	switch v := value.(type) {
	case *secretPlace:
		do(v)
	case []any:
		for _, e := range v {
			eachSecret(e, do)
		}
	case map[string]any:
		for _, e := range v {
			eachSecret(e, do)
		}
	}
}

func secretsInside(value any) (found bool) {
	eachSecret(value, func(*secretPlace) { found = true })
	return found
}

// blind replaces the places of secrets by the texts that stand in for them.
func blind(value any) any {
	switch v := value.(type) {
	case *secretPlace:
		if v.differs {
			return otherBlinded
		}
		return blinded
	case []any:
		for i := range v {
			v[i] = blind(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = blind(v[key])
		}
	}
	return value
}

// A viewer gives values as JSON for people. It is what gives something for each secret.
type viewer func(*resource.Secret) any

func (view viewer) object(m resource.PropertyMap) map[string]any {
	object := make(map[string]any, len(m))
	for k, v := range m {
		object[string(k)] = view.value(v)
	}
	return object
}

func (view viewer) value(v resource.PropertyValue) any {
	switch x := v.V.(type) {
	case *resource.Secret:
		return view(x)
	case resource.Output:
		return view.value(plainValue(v))
	case resource.Computed:
		return unknownText
	case resource.PropertyMap:
		return view.object(x)
	case []resource.PropertyValue:
		list := make([]any, len(x))
		for i, e := range x {
			list[i] = view.value(e)
		}
		return list
	case *resource.Asset:
		return shownAsset(x)
	case *resource.Archive:
		return map[string]any{resource.SigKey: resource.ArchiveSig, "hash": x.Hash, "path": x.Path, "uri": x.URI}
	case resource.ResourceReference:
		return string(x.URN)
	}
	return v.V
}

func shownAsset(a *asset.Asset) any {
	return map[string]any{resource.SigKey: resource.AssetSig, "hash": a.Hash, "path": a.Path, "uri": a.URI}
}
