package project

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"gopkg.in/yaml.v3"
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

// stackKeys are the keys that a stack's file can have, pulumiKeys those of its configuration in Pulumi's own namespace.
var (
	stackKeys  = []string{"config", "encryptedkey", "encryptionsalt", "environment", "secretsprovider"}
	pulumiKeys = []string{"pulumi:autonaming", "pulumi:disable-default-providers", "pulumi:tags"}
	// programKeys are those of a YAML program, in lower case. Source: pulumi-yaml's TemplateDecl.
	programKeys = []string{"components", "configuration", "namespace", "outputs", "pulumi", "resources", "sdks",
		"variables", "version"}
)

// included are the packages whose provider is part of deployctl, whatever plugin a project names for them.
var included = []string{"deployctl", "pulumi"}

// ownPlugins describes the plugins that a project names and that are not used.
func (p *Project) ownPlugins() (said []string) {
	if p.Definition.Plugins == nil {
		return nil
	}
	for _, plugin := range p.Definition.Plugins.Providers {
		if slices.Contains(included, plugin.Name) {
			said = append(said, fmt.Sprintf("%s names a plugin for %s (plugins.providers), which is not used: that provider "+
				"is part of deployctl", p.File, plugin.Name))
		}
	}
	return said
}

// Unread describes the keys of the project's and the stack's file that nothing reads, a sentence for each.
func (s *Stack) Unread() []string {
	var said []string
	yamlProgram := s.project.Definition.Runtime.Name() == "yaml" // which is in the project's file
	for _, key := range slices.Sorted(maps.Keys(s.project.Definition.AdditionalKeys)) {
		if !yamlProgram || !slices.Contains(programKeys, strings.ToLower(key)) {
			said = append(said, fmt.Sprintf("%s has the key %q, which means nothing there", s.project.File, key))
		}
	}
	said = append(said, s.project.ownPlugins()...)
	var all map[string]any
	if yaml.Unmarshal(s.file.RawValue(), &all) == nil {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !slices.Contains(stackKeys, key) {
				said = append(said, fmt.Sprintf("%s has the key %q, which means nothing there; values for the program are "+
					"below config", s.Path, key))
			}
		}
	}
	names := map[string]string{}
	for name := range s.project.Definition.Config {
		names[s.whole(name)] = s.project.File
	}
	for _, key := range s.Keys() {
		names[key.String()] = s.Path
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(name, "pulumi:") && !slices.Contains(pulumiKeys, name) {
			said = append(said, fmt.Sprintf("%s has %s, which means nothing to deployctl; it knows %s", names[name], name,
				strings.Join(pulumiKeys, ", ")))
		}
	}
	return said
}
