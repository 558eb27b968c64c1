// Package templates makes projects from templates: those of this binary, of a directory, or of a git repository, in the
// format of Pulumi's templates. A template may be a stranger's: what it contains is bounded and checked before anything
// is written, and nothing of it is executed.
package templates

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"gopkg.in/yaml.v3"
)

// projectFile is the file that makes a directory a project, and a template.
const projectFile = "Pulumi.yaml"

// The placeholders in the names and contents of a template's files.
const (
	placeholderProject     = "${PROJECT}"
	placeholderDescription = "${DESCRIPTION}"
)

// Template is a project to be made. Its texts are safe to print.
type Template struct {
	Name        string
	Description string     // of the template
	Quickstart  string     // what to do after the project is made; may have several lines
	Default     string     // the description of a project made from it
	Questions   []Question // by key
	Files       []File

	project *yaml.Node // Pulumi.yaml
}

// Question is a configuration value that a template asks for.
type Question struct {
	Key         string // as in Pulumi.STACK.yaml; without a namespace, the project's
	Description string
	Default     string
	Secret      bool
}

// File is one file of a template or of a project. Path is relative, with slashes.
type File struct {
	Path       string
	Content    []byte
	Executable bool
}

// Project is what a new project is called, unless its template adds to the name.
type Project struct{ Name, Description string }

// parse reads a template's files. CodeInvalid: they are no template, or not an acceptable one.
func parse(name string, files []File) (*Template, error) {
	if err := check(files); err != nil {
		return nil, err
	}
	t := &Template{Name: name, Files: files}
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == projectFile })
	if i < 0 {
		return nil, errNoProject
	}
	var document yaml.Node
	if err := yaml.Unmarshal(files[i].Content, &document); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the template's %s is not valid: %w", projectFile, err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the template's %s is not valid: it is no mapping",
			projectFile)
	}
	t.project = &document
	return t, t.describe(document.Content[0])
}

// errNoProject says that a directory is no template.
var errNoProject = deployments.Errorf(deployments.CodeInvalid, "it has no %s, so it is no template", projectFile)

// describe reads what the template says of itself.
func (t *Template) describe(project *yaml.Node) error {
	var said struct {
		Description string
		Template    workspace.ProjectTemplate
	}
	if err := project.Decode(&said); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the template's %s is not valid: %w", projectFile, err)
	}
	if !strings.Contains(said.Description, "${") {
		t.Default = safetext.Line(said.Description)
	}
	t.Description, t.Quickstart = safetext.Line(said.Template.Description), safetext.Text(said.Template.Quickstart)
	t.Default = cmp.Or(t.Default, t.Description)
	t.Description = cmp.Or(t.Description, t.Default)
	for key, value := range said.Template.Config {
		if err := deployments.ValidateConfigKey(qualified("project", key)); err != nil {
			return deployments.Errorf(deployments.CodeInvalid, "the template asks for a configuration key that is not "+
				"valid: %w", err)
		}
		t.Questions = append(t.Questions, Question{key, safetext.Line(value.Description), value.Default, value.Secret})
	}
	slices.SortFunc(t.Questions, func(a, b Question) int { return strings.Compare(a.Key, b.Key) })
	return nil
}

// qualified gives a configuration key its namespace.
func qualified(project, key string) string {
	if strings.Contains(key, ":") {
		return key
	}
	return project + ":" + key
}

// NameOf returns the name of a project that is made from the template: the one that is asked for, or with what the
// template's own name has besides the placeholder.
func (t *Template) NameOf(p Project) string {
	root := t.project.Content[0]
	if i := entry(root, "name"); i >= 0 && strings.Contains(root.Content[i+1].Value, placeholderProject) {
		return p.Fill(root.Content[i+1].Value)
	}
	return p.Name
}

// Render returns the files of a project made from the template.
func (t *Template) Render(p Project) ([]File, error) {
	for _, name := range []string{p.Name, t.NameOf(p)} {
		if err := deployments.ValidateName("project", name); err != nil {
			return nil, err
		}
	}
	if p.Description != safetext.Line(p.Description) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the description must be one line without control "+
			"characters")
	}
	var files []File
	for _, f := range t.Files {
		switch {
		case f.Path == projectFile:
			text, err := t.renderProject(p)
			if err != nil {
				return nil, err
			}
			f.Content = text
		case utf8.Valid(f.Content) && !bytes.ContainsRune(f.Content, 0):
			f.Content = []byte(p.replace(string(f.Content), quoting(f.Path)))
		}
		f.Path = p.replace(f.Path, func(s string) string { return s })
		files = append(files, f)
	}
	return files, check(files)
}

// replace replaces the placeholders of a text by values in the form that quote gives them.
func (p Project) replace(text string, quote func(string) string) string {
	return strings.NewReplacer(placeholderProject, quote(p.Name), placeholderDescription, quote(p.Description)).
		Replace(text)
}

// Fill replaces the placeholders of a text for people.
func (p Project) Fill(text string) string { return p.replace(text, func(s string) string { return s }) }

// quoting returns how a value is written between the quotes of a file: in JSON escaped, else as it is.
func quoting(name string) func(string) string {
	if path.Ext(name) != ".json" {
		return func(s string) string { return s }
	}
	return func(s string) string {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(s) // a string can be encoded
		return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
	}
}

// renderProject returns Pulumi.yaml of a project: with its name and description, and without what only a template has.
// Comments and the order of the keys stay.
func (t *Template) renderProject(p Project) ([]byte, error) {
	document := clone(t.project)
	root := document.Content[0]
	p.replaceIn(root)
	remove(root, "template")
	set(root, "name", t.NameOf(p))
	if p.Description == "" {
		remove(root, "description")
	} else {
		set(root, "description", p.Description)
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(document), encoder.Close()); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot write %s: %w", projectFile, err)
	}
	return b.Bytes(), nil
}

// replaceIn replaces the placeholders in every text below a node.
func (p Project) replaceIn(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "${") {
		n.Value = p.replace(n.Value, func(s string) string { return s })
	}
	for _, child := range n.Content {
		p.replaceIn(child)
	}
}

// clone copies a tree of nodes.
func clone(n *yaml.Node) *yaml.Node {
	copied := *n
	copied.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		copied.Content[i] = clone(child)
	}
	return &copied
}

// entry returns the index of a key in a mapping; -1 if it is not there.
func entry(mapping *yaml.Node, key string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

func remove(mapping *yaml.Node, key string) {
	if i := entry(mapping, key); i >= 0 {
		mapping.Content = slices.Delete(mapping.Content, i, i+2)
	}
}

// set gives a key of a mapping a text; a new key follows the first one.
func set(mapping *yaml.Node, key, value string) {
	text := &yaml.Node{}
	text.SetString(value)
	if i := entry(mapping, key); i >= 0 {
		text.LineComment = mapping.Content[i+1].LineComment
		mapping.Content[i+1] = text
		return
	}
	name := &yaml.Node{}
	name.SetString(key)
	mapping.Content = slices.Insert(mapping.Content, min(2, len(mapping.Content)), name, text)
}
