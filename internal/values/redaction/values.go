package redaction

import (
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/valuediff"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
)

// DifferentPlaceholder stands in for a secret that differs from the one that was at its place before. Nothing else is
// shown of it.
const DifferentPlaceholder = "[another secret]"

// SecretTexts returns the texts of the secrets in a value, for New.
func SecretTexts(v resource.PropertyValue) []string { return secretsIn(v, false, nil) }

// secretsIn appends the texts of the secrets in a value; within says that the value is part of a secret itself.
func secretsIn(v resource.PropertyValue, within bool, into []string) []string {
	switch {
	case v.IsSecret():
		return secretsIn(v.SecretValue().Element, true, into)
	case v.IsOutput():
		return secretsIn(v.OutputValue().Element, within || v.OutputValue().Secret, into)
	case v.IsObject():
		for _, element := range v.ObjectValue() {
			into = secretsIn(element, within, into)
		}
	case v.IsArray():
		for _, element := range v.ArrayValue() {
			into = secretsIn(element, within, into)
		}
	case within && v.IsString():
		into = append(into, Leaves(v.StringValue())...)
	case within && v.IsNumber():
		into = append(into, strconv.FormatFloat(v.NumberValue(), 'f', -1, 64))
	}
	return into
}

// Values returns values as JSON for people: a placeholder for each secret, assets by their hash, and Pulumi's sentinel
// for unknown values.
func Values(m resource.PropertyMap) map[string]any {
	return redacting.object(m)
}

var redacting encoder = func(*resource.Secret) any { return Placeholder }

// ValuesAfter is Values for values that replace old ones: a secret that differs from its counterpart gets another
// placeholder. Counterparts are found as readers of events find them, in lists by the longest common subsequence.
func ValuesAfter(old, now resource.PropertyMap) map[string]any {
	if !old.ContainsSecrets() || !now.ContainsSecrets() || old.DeepEquals(now) {
		return Values(now)
	}
	numbers := map[string]int{}
	numbered := encoder(func(s *resource.Secret) any {
		text := valuediff.OneLine(redacting.value(properties.Reveal(s.Element)))
		if _, known := numbers[text]; !known {
			numbers[text] = len(numbers)
		}
		return &secretPlace{Number: numbers[text]}
	})
	is := numbered.object(now)
	for _, c := range valuediff.Diff("", numbered.object(old), is) {
		// An element added to a list may replace one that was removed elsewhere in it.
		inList := strings.HasSuffix(c.Path, "]") && !strings.HasSuffix(c.Path, `"]`)
		if c.Kind == valuediff.Moved || c.Kind == valuediff.Added && inList || c.Kind == valuediff.Changed &&
			secretsInside(c.Old) {
			eachSecret(c.New, func(p *secretPlace) { p.differs = true })
		}
	}
	return replacePlaces(is).(map[string]any)
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

// replacePlaces replaces the places of secrets by the texts that stand in for them.
func replacePlaces(value any) any {
	switch v := value.(type) {
	case *secretPlace:
		if v.differs {
			return DifferentPlaceholder
		}
		return Placeholder
	case []any:
		for i := range v {
			v[i] = replacePlaces(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = replacePlaces(v[key])
		}
	}
	return value
}

// An encoder returns values as JSON for people. It is the function that returns what stands for a secret.
type encoder func(*resource.Secret) any

func (secret encoder) object(m resource.PropertyMap) map[string]any {
	object := make(map[string]any, len(m))
	for k, v := range m {
		object[string(k)] = secret.value(v)
	}
	return object
}

func (secret encoder) value(v resource.PropertyValue) any {
	switch x := v.V.(type) {
	case *resource.Secret:
		return secret(x)
	case resource.Output:
		return secret.value(properties.WithoutOutput(v))
	case resource.Computed:
		return sig.UnknownStringValue
	case resource.PropertyMap:
		return secret.object(x)
	case []resource.PropertyValue:
		list := make([]any, len(x))
		for i, e := range x {
			list[i] = secret.value(e)
		}
		return list
	case *resource.Asset:
		return assetValue(x)
	case *resource.Archive:
		return map[string]any{resource.SigKey: resource.ArchiveSig, "hash": x.Hash, "path": x.Path, "uri": x.URI}
	case resource.ResourceReference:
		return string(x.URN)
	}
	return v.V
}

func assetValue(a *asset.Asset) any {
	return map[string]any{resource.SigKey: resource.AssetSig, "hash": a.Hash, "path": a.Path, "uri": a.URI}
}
