package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
	"gopkg.in/yaml.v3"
)

// bag evaluates every property; the references in them are waited for.
func (p *player) bag(nodes map[string]yaml.Node) (resource.PropertyMap, error) {
	bag := resource.PropertyMap{}
	for name, node := range nodes {
		v, err := p.value(&node)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		bag[resource.PropertyKey(name)] = v
	}
	return bag, nil
}

// value evaluates a node. What comes from a resource or a call is an output value that knows its dependencies.
func (p *player) value(node *yaml.Node) (resource.PropertyValue, error) {
	if node.Kind == yaml.AliasNode {
		return p.value(node.Alias)
	}
	if tag := node.ShortTag(); strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!") {
		plain := *node
		plain.Tag = ""
		return p.tagged(tag, &plain)
	}
	switch node.Kind {
	case yaml.SequenceNode:
		all := []resource.PropertyValue{}
		for _, child := range node.Content {
			v, err := p.value(child)
			if err != nil {
				return v, err
			}
			all = append(all, v)
		}
		return resource.NewProperty(all), nil
	case yaml.MappingNode:
		fields := map[string]yaml.Node{}
		if err := node.Decode(&fields); err != nil {
			return resource.PropertyValue{}, err
		}
		bag, err := p.bag(fields)
		return resource.NewProperty(bag), err
	}
	if node.ShortTag() == "!!str" {
		return p.interpolate(node.Value)
	}
	return scalar(node)
}

func scalar(node *yaml.Node) (resource.PropertyValue, error) {
	var plain any
	if err := node.Decode(&plain); err != nil {
		return resource.PropertyValue{}, err
	}
	return resource.NewPropertyValue(plain), nil
}

// tagged evaluates a node with one of the tags that stand for what YAML has no notation for.
func (p *player) tagged(tag string, node *yaml.Node) (none resource.PropertyValue, err error) {
	if tag == "!secret" {
		v, err := p.value(node)
		return resource.MakeSecret(v), err
	}
	text, err := p.text(node.Value)
	if err != nil {
		return none, err
	}
	switch tag {
	case "!string":
		return resource.NewProperty(text), nil
	case "!unknown":
		return resource.MakeComputed(resource.NewProperty("")), nil
	case "!ref":
		return p.resourceReference(text)
	case "!blob":
		n, err := strconv.Atoi(text)
		return resource.NewProperty(strings.Repeat("x", n)), err
	case "!text":
		a, err := asset.FromText(text)
		return resource.NewProperty(a), err
	case "!asset":
		a, err := asset.FromPathWithWD(text, p.dir)
		return resource.NewProperty(a), err
	case "!archive":
		a, err := archive.FromPathWithWD(text, p.dir)
		return resource.NewProperty(a), err
	}
	return none, fmt.Errorf("unknown tag %s", tag)
}

// interpolate evaluates the ${references} in a string. A string that is one reference has its value and type; in any
// other, the values are texts in a text. $${ stands for ${ itself.
func (p *player) interpolate(s string) (resource.PropertyValue, error) {
	if inner, whole := strings.CutPrefix(s, "${"); whole && strings.Index(inner, "}") == len(inner)-1 {
		return p.reference(inner[:len(inner)-1])
	}
	var text strings.Builder
	out := resource.Output{Known: true}
	for s != "" {
		before, after, found := strings.Cut(s, "${")
		if escaped, is := strings.CutSuffix(before, "$"); found && is {
			text.WriteString(escaped + "${")
			s = after
			continue
		}
		text.WriteString(before)
		if !found {
			break
		}
		expression, rest, closed := strings.Cut(after, "}")
		if !closed {
			return resource.PropertyValue{}, fmt.Errorf("a ${ is not closed in %q", s)
		}
		v, err := p.reference(expression)
		if err != nil {
			return v, err
		}
		t := leaf(v)
		text.WriteString(display(t.Element))
		out.Known, out.Secret = out.Known && t.Known, out.Secret || t.Secret
		out.Dependencies = append(out.Dependencies, t.Dependencies...)
		s = rest
	}
	out.Element = resource.NewProperty(text.String())
	return fold(out), nil
}

// text is a string with its references, secret or not, as plain text. It is an error if one is unknown.
func (p *player) text(s string) (string, error) {
	v, err := p.interpolate(s)
	if err != nil {
		return "", err
	}
	out := leaf(v)
	if !out.Known {
		return "", errUnknown
	}
	return display(out.Element), nil
}

// reference evaluates what stands between ${ and }.
func (p *player) reference(expression string) (none resource.PropertyValue, err error) {
	end := strings.IndexAny(expression, ".[")
	if end < 0 {
		end = len(expression)
	}
	head, rest := expression[:end], strings.TrimPrefix(expression[end:], ".")
	switch head {
	case "config":
		return p.config(rest)
	case "env":
		return plain(os.Getenv(rest))
	case "project":
		return resource.NewProperty(p.run.GetProject()), nil
	case "stack":
		return resource.NewProperty(p.run.GetStack()), nil
	case "organization":
		return resource.NewProperty(p.run.GetOrganization()), nil
	case "dryRun":
		return resource.NewProperty(p.run.GetDryRun()), nil
	case "pwd":
		return resource.NewProperty(p.dir), nil
	}
	m, err := p.await(head)
	if err != nil {
		return none, err
	}
	path, err := resource.ParsePropertyPath(rest)
	if err != nil {
		return none, fmt.Errorf("${%s}: %w", expression, err)
	}
	return m.lookup(path, p.run.GetDryRun())
}

// config gives a configuration value, of the project unless the key names another namespace; "" when there is none.
func (p *player) config(key string) (resource.PropertyValue, error) {
	if !strings.Contains(key, ":") {
		key = p.run.GetProject() + ":" + key
	}
	v, err := plain(p.run.GetConfig()[key])
	if slices.Contains(p.run.GetConfigSecretKeys(), key) {
		v = resource.MakeSecret(v)
	}
	return v, err
}

// plain gives text the type that it has in YAML: a number, a boolean, or a string.
func plain(text string) (resource.PropertyValue, error) {
	node := yaml.Node{Kind: yaml.ScalarNode, Value: text}
	switch node.ShortTag() {
	case "!!int", "!!float", "!!bool":
		return scalar(&node)
	}
	return resource.NewProperty(text), nil
}

// file is a path in the program's directory, unless it is absolute.
func (p *player) file(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.dir, path)
}
