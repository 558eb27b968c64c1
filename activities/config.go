package activities

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	sdkconfig "github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// configuration is a stack's configuration, by "namespace:name", secrets in clear.
type configuration map[string]deployments.ConfigValue

// plain gives the values as programs get them.
func (c configuration) plain() map[string]string {
	values := make(map[string]string, len(c))
	for key, v := range c {
		values[key] = v.Value
	}
	return values
}

// byKey gives the values as providers that construct components get them.
func (c configuration) byKey() map[sdkconfig.Key]string {
	values := make(map[sdkconfig.Key]string, len(c))
	for key, v := range c {
		if k, err := sdkconfig.ParseKey(key); err == nil {
			values[k] = v.Value
		}
	}
	return values
}

// secretKeys are the keys whose values are secret, sorted.
func (c configuration) secretKeys() []string {
	var secret []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if c[key].Secret {
			secret = append(secret, key)
		}
	}
	return secret
}

// of gives the configuration of a package's default provider: what is in the package's namespace. Dynamic providers are
// part of the program, so they get everything, by its whole key.
func (c configuration) of(pkg string) resource.PropertyMap {
	inputs := resource.PropertyMap{}
	for key, v := range c {
		name, ok := strings.CutPrefix(key, pkg+":")
		name = strings.TrimPrefix(name, "config:") // how keys were written long ago
		if pkg == nodeDynamic || pkg == pythonDynamic {
			name, ok = key, true
		}
		if !ok {
			continue
		}
		value := resource.NewProperty(v.Value)
		if v.Secret {
			value = resource.MakeSecret(value)
		}
		inputs[resource.PropertyKey(name)] = value
	}
	return inputs
}

// deniesDefaultProvider tells whether the stack forbids the default provider of a package.
func (c configuration) deniesDefaultProvider(pkg string) bool {
	text := c["pulumi:disable-default-providers"].Value
	if text == "" || pkg == "pulumi" {
		return false
	}
	var denied []string
	if json.Unmarshal([]byte(text), &denied) != nil {
		return true // what cannot be read is not taken for a permission
	}
	return slices.ContainsFunc(denied, func(d string) bool {
		d = strings.TrimSpace(d)
		return d == "*" || d == pkg
	})
}
