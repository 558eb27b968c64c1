package project

import (
	"net/url"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// This file is about keys of Pulumi.yaml and Pulumi.STACK.yaml that ask for something beside the program and its
// configuration. Each is obeyed, or refused or warned about by its name.

// Refreshes reports whether the project asks for a refresh before each update (options.refresh).
func (p *Project) Refreshes() bool {
	return p.Definition.Options != nil && p.Definition.Options.Refresh == "always"
}

// OtherBackend returns where the project says that its stacks are (backend.url), unless that is one of the services:
// addresses with a host, such as host:port. "" if it says nothing.
func (p *Project) OtherBackend(services ...string) string {
	if p.Definition.Backend == nil || p.Definition.Backend.URL == "" {
		return ""
	}
	backend := p.Definition.Backend.URL
	if u, err := url.Parse(backend); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		for _, service := range services {
			host, _, _ := strings.Cut(service, ":")
			if host != "" && u.Hostname() == host {
				return ""
			}
		}
	}
	return backend
}

// asks refuses what the stack's file asks for and does not get: variables and configuration of environments.
func (s *Stack) asks() error {
	if s.file.Environment == nil || len(s.file.Environment.Definition()) == 0 {
		return nil
	}
	return deployments.Errorf(deployments.CodeInvalid, "%s asks for environments of Pulumi ESC (environment), which "+
		"deployctl does not open: the update would run with other credentials and values than it is meant to. Set "+
		"them as configuration or as variables and remove the key, or name another file with --config-file", s.Path)
}
