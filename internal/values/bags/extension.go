package bags

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// inlineExtension is the size in bytes up to which an extension travels inline: every resource that belongs to it has
// the bag, so it is worth less than InlineLimit.
const inlineExtension = 512

// The properties of an extension in a bag.
const (
	extensionName    = "name"
	extensionVersion = "version"
	extensionValue   = "value" // base64
)

// ExtensionRef is the extensionRef of an extension in the deployment format: the SHA-256 of its content.
func ExtensionRef(e apitype.Extension) string {
	h := sha256.New()
	h.Write([]byte(e.Name + "\x00" + e.Version + "\x00"))
	h.Write(e.Value)
	return hex.EncodeToString(h.Sum(nil))
}

// ExtensionValues are the values in the bag of an extension.
func ExtensionValues(e apitype.Extension) resource.PropertyMap {
	return resource.PropertyMap{
		extensionName: resource.NewProperty(e.Name), extensionVersion: resource.NewProperty(e.Version),
		extensionValue: resource.NewProperty(base64.StdEncoding.EncodeToString(e.Value)),
	}
}

// EncodeExtension gives the bag of an extension; its digest is the ExtensionRef.
func (c *Codec) EncodeExtension(ctx context.Context, e apitype.Extension) (engine.Bag, error) {
	bag, err := c.EncodeWithin(ctx, ExtensionValues(e), inlineExtension)
	bag.Digest = ExtensionRef(e)
	return bag, err
}

// DecodeExtension gives the extension in a bag.
func (c *Codec) DecodeExtension(ctx context.Context, bag engine.Bag) (apitype.Extension, error) {
	values, err := c.Decode(ctx, bag)
	if err != nil {
		return apitype.Extension{}, err
	}
	var fields [3]string
	for i, name := range []resource.PropertyKey{extensionName, extensionVersion, extensionValue} {
		if v := values[name]; v.IsString() {
			fields[i] = v.StringValue()
		}
	}
	e := apitype.Extension{Name: fields[0], Version: fields[1]}
	if e.Value, err = base64.StdEncoding.DecodeString(fields[2]); err != nil || e.Name == "" {
		return e, deployments.Errorf(deployments.CodeInternal, "the bag %s holds no extension of a package", bag.Digest)
	}
	return e, nil
}
