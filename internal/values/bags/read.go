package bags

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Decrypt gives a secret's plain text.
type Decrypt func(ciphertext string) (string, error)

// FromPlain reads the plain form.
func FromPlain(plain []byte) (resource.PropertyMap, error) {
	return FromStored(plain, func(string) (string, error) {
		return "", errors.New("a ciphertext is no plain value")
	})
}

// FromStored reads the stored form, of whatever origin. It also reads the plain form, but for ciphertexts the two are
// disjoint.
func FromStored(stored []byte, decrypt Decrypt) (resource.PropertyMap, error) {
	if len(stored) == 0 {
		return resource.PropertyMap{}, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(stored, &fields); err != nil {
		return nil, err
	}
	return reader{decrypt}.object(fields)
}

type reader struct{ decrypt Decrypt }

func (r reader) object(fields map[string]any) (resource.PropertyMap, error) {
	m := make(resource.PropertyMap, len(fields))
	for k, v := range fields {
		value, err := r.value(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		m[resource.PropertyKey(k)] = value
	}
	return m, nil
}

func (r reader) value(v any) (resource.PropertyValue, error) {
	switch x := v.(type) {
	case nil:
		return resource.NewNullProperty(), nil
	case bool:
		return resource.NewProperty(x), nil
	case float64:
		return resource.NewProperty(x), nil
	case string:
		if sig.IsUnknown(x) {
			return resource.MakeComputed(sample(x)), nil
		}
		return resource.NewProperty(x), nil
	case []any:
		a := make([]resource.PropertyValue, len(x))
		for i, e := range x {
			var err error
			if a[i], err = r.value(e); err != nil {
				return resource.PropertyValue{}, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return resource.NewProperty(a), nil
	case map[string]any:
		if signature, ok := x[sig.Key]; ok {
			return r.signed(signature, x)
		}
		m, err := r.object(x)
		return resource.NewProperty(m), err
	}
	return resource.PropertyValue{}, fmt.Errorf("%T is not a JSON value", v)
}

func (r reader) signed(signature any, fields map[string]any) (resource.PropertyValue, error) {
	switch signature {
	case sig.Secret:
		return r.secret(fields)
	case sig.OutputValue:
		return r.output(fields)
	case sig.ResourceReference:
		return r.reference(fields)
	case sig.AssetSig:
		a, _, err := asset.Deserialize(fields)
		return resource.NewProperty(a), err
	case sig.ArchiveSig:
		a, _, err := archive.Deserialize(fields)
		return resource.NewProperty(a), err
	case sig.ByteString:
		b, err := base64.StdEncoding.DecodeString(text(fields, "value"))
		return resource.NewProperty(string(b)), err
	case floatSig:
		bits, err := strconv.ParseUint(text(fields, "value"), 16, 64)
		return resource.NewProperty(math.Float64frombits(bits)), err
	}
	return resource.PropertyValue{}, fmt.Errorf("signature %v is not known to this version", signature)
}

func (r reader) secret(fields map[string]any) (resource.PropertyValue, error) {
	if v, ok := fields["value"]; ok {
		element, err := r.value(v)
		return resource.MakeSecret(element), err
	}
	plain, cipher := text(fields, "plaintext"), text(fields, "ciphertext")
	if (plain == "") == (cipher == "") {
		return resource.PropertyValue{}, errors.New("a secret has either a ciphertext or a plaintext")
	}
	if cipher != "" {
		var err error
		if plain, err = r.decrypt(cipher); err != nil {
			return resource.PropertyValue{}, fmt.Errorf("decrypt: %w", err)
		}
	}
	var v any
	if err := json.Unmarshal([]byte(plain), &v); err != nil {
		return resource.PropertyValue{}, fmt.Errorf("the secret's plain text is not JSON")
	}
	element, err := reader{func(s string) (string, error) { return s, nil }}.value(v)
	return resource.MakeSecret(element), err
}

func (r reader) output(fields map[string]any) (resource.PropertyValue, error) {
	var o resource.Output
	if v, ok := fields["value"]; ok {
		var err error
		if o.Element, err = r.value(v); err != nil {
			return resource.PropertyValue{}, err
		}
		o.Known = true
	}
	o.Secret, _ = fields["secret"].(bool)
	deps, _ := fields["dependencies"].([]any)
	for _, d := range deps {
		s, ok := d.(string)
		if !ok {
			return resource.PropertyValue{}, errors.New("an output value's dependency is no URN")
		}
		o.Dependencies = append(o.Dependencies, urn.URN(s))
	}
	return resource.NewProperty(o), nil
}

func (r reader) reference(fields map[string]any) (resource.PropertyValue, error) {
	ref := resource.ResourceReference{
		URN: urn.URN(text(fields, "urn")), PackageVersion: text(fields, "packageVersion"),
		Name: text(fields, "name"), Type: text(fields, "type"),
	}
	if ref.URN == "" {
		return resource.PropertyValue{}, errors.New("a resource reference has no urn")
	}
	if ref.Name == "" && ref.Type == "" && ref.URN.IsValid() {
		ref.Name, ref.Type = ref.URN.Name(), string(ref.URN.Type())
	}
	switch id := fields["id"].(type) {
	case nil:
	case string:
		ref.ID = resource.NewProperty(id)
		if id == "" || sig.IsUnknown(id) {
			ref.ID = resource.MakeComputed(resource.NewProperty(""))
		}
	case map[string]any: // how some versions of the stock CLI wrote an id
		switch inner := id["V"].(type) {
		case nil:
		case string:
			ref.ID = resource.NewProperty(inner)
		default:
			ref.ID = resource.MakeComputed(resource.NewProperty(""))
		}
	default:
		return resource.PropertyValue{}, errors.New("a resource reference's id is no string")
	}
	return resource.NewProperty(ref), nil
}

// text gives a field that is a string; empty when it is missing or something else.
func text(fields map[string]any, name string) string {
	s, _ := fields[name].(string)
	return s
}

// sample gives a value of the type that a sentinel of an unknown value stands for.
func sample(sentinel string) resource.PropertyValue {
	switch sentinel {
	case sig.UnknownBoolValue:
		return resource.NewProperty(false)
	case sig.UnknownNumberValue:
		return resource.NewProperty(0.0)
	case sig.UnknownArrayValue:
		return resource.NewProperty([]resource.PropertyValue{})
	case sig.UnknownObjectValue:
		return resource.NewProperty(resource.PropertyMap{})
	case sig.UnknownAssetValue:
		return resource.NewProperty(&asset.Asset{Sig: sig.AssetSig})
	case sig.UnknownArchiveValue:
		return resource.NewProperty(&archive.Archive{Sig: sig.ArchiveSig})
	}
	return resource.NewProperty("")
}
