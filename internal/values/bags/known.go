package bags

import (
	"bytes"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
)

// HasUnknown reports whether a value is, or contains, one that is not known.
func HasUnknown(v resource.PropertyValue) bool {
	switch x := v.V.(type) {
	case resource.Computed:
		return true
	case resource.Output:
		return !x.Known || HasUnknown(x.Element)
	case *resource.Secret:
		return HasUnknown(x.Element)
	case []resource.PropertyValue:
		for _, e := range x {
			if HasUnknown(e) {
				return true
			}
		}
	case resource.PropertyMap:
		for _, e := range x {
			if HasUnknown(e) {
				return true
			}
		}
	}
	return false
}

// Known gives the properties that are known. In the place of one that is not, or not wholly, it has the one of instead,
// if that is known; otherwise it leaves it out.
func Known(values, instead resource.PropertyMap) resource.PropertyMap {
	out := values
	copied := false
	for k, v := range values {
		if !HasUnknown(v) {
			continue
		}
		if !copied {
			out, copied = values.Copy(), true
		}
		delete(out, k)
		if last, ok := instead[k]; ok && !HasUnknown(last) {
			out[k] = last
		}
	}
	return out
}

// sentinels are what stands for unknown values in the stored form.
var sentinels = [][]byte{
	[]byte(sig.UnknownStringValue), []byte(sig.UnknownBoolValue), []byte(sig.UnknownNumberValue),
	[]byte(sig.UnknownArrayValue),
	[]byte(sig.UnknownObjectValue), []byte(sig.UnknownAssetValue), []byte(sig.UnknownArchiveValue),
}

// MayHaveUnknown reports whether a stored form may contain an unknown value: if not, it has none outside of
// ciphertexts.
func MayHaveUnknown(stored []byte) bool {
	for _, s := range sentinels {
		if bytes.Contains(stored, s) {
			return true
		}
	}
	return false
}
