package bags

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

// concealed returns values in which each text is a secret in which Secret finds one.
func (c *Codec) concealed(values resource.PropertyMap) resource.PropertyMap {
	if c.Secret == nil {
		return values
	}
	out := make(resource.PropertyMap, len(values))
	for key, v := range values {
		out[key] = c.concealedValue(v)
	}
	return out
}

func (c *Codec) concealedValue(v resource.PropertyValue) resource.PropertyValue {
	switch x := v.V.(type) {
	case string:
		if c.Secret(x) {
			return resource.MakeSecret(v)
		}
	case []resource.PropertyValue:
		out := slices.Clone(x)
		for i := range out {
			out[i] = c.concealedValue(out[i])
		}
		return resource.NewProperty(out)
	case resource.PropertyMap:
		for key := range x {
			if c.Secret(string(key)) {
				return resource.MakeSecret(v)
			}
		}
		return resource.NewProperty(c.concealed(x))
	case resource.Output:
		if x.Known && !x.Secret && c.concealedValue(x.Element).ContainsSecrets() {
			x.Secret = true
			return resource.NewProperty(x)
		}
	case *asset.Asset, *archive.Archive:
		if c.inContent(x) {
			return resource.MakeSecret(v)
		}
	}
	return v
}

// inContent reports whether the text of an asset, or of one in an archive, has a secret.
func (c *Codec) inContent(content any) bool {
	switch x := content.(type) {
	case *asset.Asset:
		return c.Secret(x.Text)
	case *archive.Archive:
		for _, part := range x.Assets {
			if c.inContent(part) {
				return true
			}
		}
	}
	return false
}
