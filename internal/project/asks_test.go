package project

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// What becomes of a key of a project's files.
const (
	works    = "works"    // as Pulumi means it; docs/compatibility.md has the tests
	informs  = "informs"  // means nothing for an update to Pulumi, either
	refused  = "refused"  // the update fails and names it
	warned   = "warned"   // the update begins with a warning that names it
	template = "template" // deployctl new reads it
)

// projectKeys says what becomes of each key of Pulumi.yaml, and files says so of Pulumi.STACK.yaml.
var (
	projectKeys = map[string]string{
		"name": works, "description": informs, "author": informs, "website": informs, "license": informs,
		"runtime": works, "runtime.name": works, "runtime.options": works, "main": works,
		"config": works, "config.*": works, "config.*.type": works, "config.*.items": works,
		"config.*.description": informs, "config.*.secret": works, "config.*.default": works, "config.*.value": works,
		"stackConfigDir": works, "backend": warned, "backend.url": warned,
		"options": works, "options.refresh": works,
		"template": template, "packages": works, "plugins": works,
		"plugins.providers": works, "plugins.languages": works, "plugins.analyzers": works,
		"requiredPulumiVersion": works,
	}
	fileKeys = map[string]string{"secretsprovider": works, "encryptedkey": works, "encryptionsalt": works,
		"config": works, "environment": refused}
)

func TestEveryKeyOfAProjectsFilesIsObeyedRefusedOrWarnedAbout(t *testing.T) {
	found := map[string]bool{}
	walk(workspace.ProjectSchema, "", found)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[workspace.Project]()) {
		if name := yamlName(field); name != "" {
			found[name] = true
		}
	}
	for key := range found {
		if projectKeys[key] == "" && !strings.HasPrefix(key, "template.") && !strings.HasPrefix(key, "packages.") &&
			!strings.HasPrefix(key, "plugins.") && !strings.HasPrefix(key, "config.*.items.") {
			t.Errorf("nothing says what becomes of the key %s of Pulumi.yaml", key)
		}
	}
	if len(found) < len(projectKeys)/2 {
		t.Errorf("the schema has only %v", found)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[workspace.ProjectStack]()) {
		name := yamlName(field)
		if name != "" && (fileKeys[name] == "" || !slices.Contains(stackKeys, name)) {
			t.Errorf("nothing says what becomes of the key %s of Pulumi.STACK.yaml", name)
		}
	}
}

// walk collects the keys of a schema's objects, as paths. "*" is any key.
func walk(s *jsonschema.Schema, path string, found map[string]bool) {
	if s == nil || strings.Count(path, ".") > 2 {
		return
	}
	below := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	for name, property := range s.Properties {
		if path != "config" { // whose properties are those of a declaration that is misplaced
			found[below(name)] = true
			walk(property, below(name), found)
		}
	}
	if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		walk(more, below("*"), found)
	}
	for _, other := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf, []*jsonschema.Schema{s.Ref}) {
		walk(other, path, found)
	}
}

func yamlName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return name
}

func TestWhatNothingReadsIsNamed(t *testing.T) {
	dir := lay(t, map[string]string{
		"Pulumi.yaml": "name: web\nruntime: nodejs\nconfg: {}\nconfig: {'pulumi:tag': {value: {a: b}}}\n" +
			"plugins: {providers: [{name: deployctl, path: ./nowhere}, {name: kubernetes, path: ./there}]}\n",
		"Pulumi.dev.yaml": "Config: {}\nconfig: {'pulumi:autoname': {}, 'pulumi:tags': {a: b}}\n",
	})
	stack := opened(t, dir)
	said := strings.Join(stack.Unread(), "\n")
	for _, want := range []string{`"confg"`, `"Config"`, "pulumi:tag,", "pulumi:autoname,", "a plugin for deployctl"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not in\n%s", want, said)
		}
	}
	if strings.Count(said, "\n") != 4 {
		t.Errorf("said\n%s", said)
	}
	dir = lay(t, map[string]string{
		"Pulumi.yaml": "name: web\nruntime: nodejs\ndeploy: {include: [.], installScripts: true, inclusive: [.]}\n" +
			"plugins: {providrs: []}\n",
		"Pulumi.dev.yaml": "",
	})
	said = strings.Join(opened(t, dir).Unread(), "\n")
	for _, want := range []string{"deploy.inclusive", "plugins.providrs"} {
		if !strings.Contains(said, `"`+want+`"`) {
			t.Errorf("%s is not in\n%s", want, said)
		}
	}
	if strings.Count(said, "\n") != 1 {
		t.Errorf("said\n%s", said)
	}
	dir = lay(t, map[string]string{
		"Pulumi.yaml":     "name: web\nruntime: yaml\nresuorces: {}\nvariables: {}\noutputs: {}\nbackend: {}\n",
		"Pulumi.dev.yaml": "",
	})
	if said := opened(t, dir).Unread(); len(said) != 1 || !strings.Contains(said[0], `"resuorces"`) {
		t.Errorf("of a YAML program is said %q", said)
	}
}

func TestSettingsOfDeployctlInAProjectHaveTheirTypes(t *testing.T) {
	for deploy, fails := range map[string]bool{
		"{include: ['..', a/b], installScripts: false}": false, "{}": false,
		"{include: a}": true, "{include: [{a: b}]}": true, "{installScripts: 3}": true, "[include]": true, "yes please": true,
	} {
		dir := lay(t, map[string]string{"Pulumi.yaml": "name: web\nruntime: nodejs\ndeploy: " + deploy + "\n"})
		if _, err := Find(dir); (err != nil) != fails || fails && !strings.Contains(err.Error(), "installScripts, true") {
			t.Errorf("%s: %v", deploy, err)
		}
	}
}

func TestAnEnvironmentThatIsNotOpenedFailsTheUpdate(t *testing.T) {
	for text, fails := range map[string]bool{
		"environment: [aws-prod]\n":                       true,
		"environment: {values: {pulumiConfig: {a: b}}}\n": true,
		"config: {'web:environment': prod}\n":             false,
	} {
		dir := lay(t, map[string]string{"Pulumi.yaml": "name: web\nruntime: yaml\n", "Pulumi.dev.yaml": text})
		_, err := opened(t, dir).Values(t.Context(), nil)
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), "(environment)") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAProjectNamesItsBackendAndItsRefresh(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"backend: {}\n":                    "",
		"backend: {url: s3://our-state}\n": "s3://our-state",
		"backend: {url: 'https://api.pulumi.com'}\n":   "https://api.pulumi.com",
		"backend: {url: 'https://deploy.example/x'}\n": "",
		"backend: {url: 'http://127.0.0.1:4400'}\n":    "",
	} {
		p, err := Find(lay(t, map[string]string{"Pulumi.yaml": "name: web\nruntime: yaml\n" + text}))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.OtherBackend("deploy.example:443", "127.0.0.1", ""); got != want || p.Refreshes() {
			t.Errorf("%s: %q", text, got)
		}
	}
	p, err := Find(lay(t, map[string]string{"Pulumi.yaml": "name: web\nruntime: yaml\noptions: {refresh: always}\n"}))
	if err != nil || !p.Refreshes() {
		t.Errorf("refreshes: %v, %v", p.Refreshes(), err)
	}
}

// opened loads the stack dev of a project.
func opened(t *testing.T, dir string) *Stack {
	t.Helper()
	p, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	stack, err := p.Stack("dev")
	if err != nil {
		t.Fatal(err)
	}
	return stack
}
