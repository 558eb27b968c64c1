package project

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"gopkg.in/yaml.v3"
)

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

// deployKey is the key of Pulumi.yaml below which deployctl's own settings of a project are. They are read where they
// are used; here is checked what they are.
const deployKey = "deploy"

// ownSettings has the form of what is below deployKey, for its keys and their types.
type ownSettings struct {
	Include        []string `yaml:"include"`
	InstallScripts bool     `yaml:"installScripts"`
}

// checkOwn refuses settings below deployKey that are of another form.
func (p *Project) checkOwn() error {
	var file struct {
		Deploy ownSettings `yaml:"deploy"`
	}
	if err := yaml.Unmarshal(p.Definition.RawValue(), &file); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%s: %s has include, a list of paths, and installScripts, "+
			"true or false: %w", p.File, deployKey, err)
	}
	return nil
}

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

// unknownKeys returns the keys of a value that the struct it is decoded into has not, and those that it has.
func unknownKeys(value any, as reflect.Type) (unknown, known []string) {
	for _, field := range reflect.VisibleFields(as) {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		known = append(known, name)
	}
	keys, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(known, key) {
			unknown = append(unknown, key)
		}
	}
	return unknown, known
}

// below describes the keys that nothing reads below those of the project's file. What is below others is refused by
// Pulumi's schema.
func (p *Project) below() (said []string) {
	var file map[string]any
	if err := yaml.Unmarshal(p.Definition.RawValue(), &file); err != nil {
		return nil // it was read before
	}
	for _, known := range []struct {
		key string
		as  reflect.Type
	}{
		{deployKey, reflect.TypeFor[ownSettings]()},
		{"plugins", reflect.TypeFor[workspace.Plugins]()},
	} {
		unknown, names := unknownKeys(file[known.key], known.as)
		for _, key := range unknown {
			said = append(said, fmt.Sprintf("%s has the key %q, which means nothing there; below %s it knows %s", p.File,
				known.key+"."+key, known.key, strings.Join(names, ", ")))
		}
	}
	return said
}

// Unread describes the keys of the project's and the stack's file that nothing reads, a sentence for each.
func (s *Stack) Unread() []string {
	var said []string
	yamlProgram := s.project.Definition.Runtime.Name() == "yaml" // which is in the project's file
	for _, key := range slices.Sorted(maps.Keys(s.project.Definition.AdditionalKeys)) {
		if key != deployKey && (!yamlProgram || !slices.Contains(programKeys, strings.ToLower(key))) {
			said = append(said, fmt.Sprintf("%s has the key %q, which means nothing there", s.project.File, key))
		}
	}
	said = append(said, s.project.below()...)
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
		if sentence := s.unreadKey(name, names[name]); sentence != "" {
			said = append(said, sentence)
		}
	}
	return said
}

// UnreadKey describes a key of the configuration that is in Pulumi's or deployctl's namespace and that nothing reads;
// "" if something does, or may.
func (s *Stack) UnreadKey(key config.Key) string { return s.unreadKey(key.String(), s.Path) }

func (s *Stack) unreadKey(name, file string) string {
	namespace, short, _ := strings.Cut(name, ":")
	name = namespace + ":" + strings.TrimPrefix(short, "config:") // how keys were written long ago
	known, others := pulumiKeys, ""
	switch namespace {
	case s.project.Name(): // the program's
		return ""
	case "pulumi":
	case "deployctl":
		if slices.Contains(stackkeys.OfProvider(), name) {
			return ""
		}
		known, others = stackkeys.All(), ", and the configuration of its provider"
	default:
		return ""
	}
	if slices.Contains(known, name) {
		return ""
	}
	return fmt.Sprintf("%s has %s, which means nothing to deployctl; it knows %s%s", file, name,
		strings.Join(known, ", "), others)
}
