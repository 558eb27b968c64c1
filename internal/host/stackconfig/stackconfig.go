// Package stackconfig reads a stack's configuration as programs and providers need it.
package stackconfig

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	sdkconfig "github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// Config is a stack's configuration, by "namespace:name". Its secrets are plaintext.
type Config map[string]deployments.ConfigValue

// Reveal returns all values, secrets as plaintext, as programs get them.
func (c Config) Reveal() map[string]string {
	values := make(map[string]string, len(c))
	for key, v := range c {
		values[key] = v.Value
	}
	return values
}

// RevealByKey returns all values, secrets as plaintext, as providers that construct components get them.
func (c Config) RevealByKey() map[sdkconfig.Key]string {
	values := make(map[sdkconfig.Key]string, len(c))
	for key, v := range c {
		if k, err := sdkconfig.ParseKey(key); err == nil {
			values[k] = v.Value
		}
	}
	return values
}

// SecretKeys returns the keys whose values are secret, sorted.
func (c Config) SecretKeys() []string {
	var secret []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if c[key].Secret {
			secret = append(secret, key)
		}
	}
	return secret
}

// ForPackage returns the configuration of a package's default provider: what is in the package's namespace, but not
// what tells deployctl itself what to do. Dynamic providers are part of the program, so they get everything, by its
// whole key.
func (c Config) ForPackage(pkg string) resource.PropertyMap {
	inputs := resource.PropertyMap{}
	for key, v := range c {
		name, ok := strings.CutPrefix(key, pkg+":")
		name = strings.TrimPrefix(name, "config:") // how keys were written long ago
		if pluginhost.IsDynamic(pkg) {
			name, ok = key, true
		}
		if !ok || !pluginhost.IsDynamic(pkg) && stackkeys.Of(pkg+":"+name) != "" {
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

// DeniesDefaultProvider reports whether the stack forbids the default provider of a package.
func (c Config) DeniesDefaultProvider(pkg string) bool {
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

// SecretTexts returns the texts that must not appear in output: the secret values and their parts.
func (c Config) SecretTexts() []string {
	var texts []string
	for _, key := range c.SecretKeys() {
		texts = append(texts, redaction.Leaves(c[key].Value)...)
	}
	return texts
}
