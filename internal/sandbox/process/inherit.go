package process

import "strings"

// inheritedVariables are the variables of the service's own environment that programs and plugins receive unless the
// client sends its own value: many programs cannot run without them.
var inheritedVariables = []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "USER", "SSL_CERT_FILE",
	"SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "PULUMI_HOME"}

// Inherit returns the environment of an update's programs and plugins: the inherited variables, and after them the
// ones that the client sent. Of two equal names the last one counts.
func Inherit(sent, own []string) []string {
	var env []string
	for _, name := range inheritedVariables {
		for _, entry := range own {
			if strings.HasPrefix(entry, name+"=") {
				env = append(env, entry)
			}
		}
	}
	for _, entry := range sent {
		if name, _, ok := strings.Cut(entry, "="); ok && !strings.HasPrefix(name, "DEPLOYCTL_") && name != "" {
			env = append(env, entry)
		}
	}
	return append(env, "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true", "PULUMI_SKIP_UPDATE_CHECK=true")
}
