// Package providers assembles the first-party package, deployctl, of its modules.
package providers

import (
	"github.com/deployctl/deployctl/internal/remote"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/command"
	"github.com/deployctl/deployctl/providers/s3"
)

// Version is the package's version.
const Version = "0.1.0"

// Defaults are what the package falls back on where the user configures nothing.
type Defaults struct {
	// S3 is the endpoint and credentials to use; see s3.Defaults for when.
	S3 s3.Config
	// Environment, as KEY=VALUE, is the user's. Nil is that of this process: right for a plugin process; inside a
	// service it must be given.
	Environment []string
	// Box is what commands are run in and files are read from, inside a service.
	Box *sandbox.Box
	// Remote fetches what programs name by URL; nil: nothing is fetched.
	Remote *remote.Fetcher
}

// Package is the package deployctl. Each call returns one of its own, for one server.
func Package(d Defaults) provider.Package {
	return provider.Package{
		Name: "deployctl", Version: Version, DisplayName: "deployctl",
		Description: "The first-party resources of deployctl: S3 buckets, objects and directories, and commands.",
		Homepage:    "https://github.com/deployctl/deployctl",
		Environment: d.Environment,
		Modules: []provider.Module{
			s3.Module(s3.Defaults{Config: d.S3, Environment: d.Environment, Box: d.Box, Remote: d.Remote}),
			command.Module(d.Environment, d.Box),
		},
	}
}
