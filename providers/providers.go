// Package providers assembles the first-party package, deployctl, of its modules.
package providers

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/binding"
	"github.com/deployctl/deployctl/providers/command"
	"github.com/deployctl/deployctl/providers/http"
	"github.com/deployctl/deployctl/providers/postgres"
	"github.com/deployctl/deployctl/providers/s3"
	"github.com/deployctl/deployctl/providers/temporal"
)

// Name is the package's name, and Version its version.
const (
	Name    = "deployctl"
	Version = "0.1.0"
)

// Defaults are what the package falls back on where the user configures nothing.
type Defaults struct {
	// S3 is the endpoint and credentials to use; see s3.Module for when.
	S3 s3.Config
}

// defaultsVariable is the variable that tells a plugin process its defaults, as JSON.
const defaultsVariable = "DEPLOYCTL_PROVIDER_DEFAULTS"

// Environment returns what the environment of a plugin process has for these defaults, as KEY=value.
func (d Defaults) Environment() []string {
	if d == (Defaults{}) {
		return nil
	}
	text, _ := json.Marshal(d) // strings always marshal
	return []string{defaultsVariable + "=" + string(text)}
}

// TakeDefaults returns the defaults that Environment has put into the environment of this process, and takes them out:
// commands do not get them.
func TakeDefaults() (d Defaults, err error) {
	text, ok := os.LookupEnv(defaultsVariable)
	if !ok {
		return d, nil
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("%s: %w", defaultsVariable, err)
	}
	return d, os.Unsetenv(defaultsVariable)
}

// Package is the package deployctl. Each call returns one of its own, for one server.
func Package(d Defaults) provider.Package {
	return provider.Package{
		Name: Name, Version: Version, DisplayName: "deployctl",
		Description: "The first-party resources of deployctl: S3 buckets, objects and directories, resources of REST APIs, " +
			"PostgreSQL, Temporal servers, commands, and bindings.",
		Homepage: "https://github.com/deployctl/deployctl",
		Modules: []provider.Module{s3.Module(d.S3), http.Module(), postgres.Module(), temporal.Module(), command.Module(),
			binding.Module()},
	}
}
