// Package pcl writes declarations of resources as PCL, from which language hosts generate programs in their languages.
package pcl

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

// Resource is a resource as a program declares it. Parent and Provider are names of variables; both may be empty. With
// an ID, properties of other resources that have it as their value refer to the resource.
type Resource struct {
	Variable, Name, Type string
	ID                   string
	Inputs               resource.PropertyMap
	Parent, Provider     string
	Protect              bool
}

// Program returns the text that declares the resources, in their order. Secrets are replaced by a placeholder.
func Program(resources []Resource) string {
	w := writer{references: newReferences(resources)}
	for n, r := range resources {
		if n > 0 {
			w.WriteString("\n")
		}
		w.resource = n
		w.declare(r)
	}
	return w.String()
}

type writer struct {
	strings.Builder
	references *references
	resource   int // that is being declared
}

func (w *writer) declare(r Resource) {
	fmt.Fprintf(w, "resource %s %s {\n", quoted(r.Variable), quoted(r.Type))
	if r.Variable != r.Name {
		fmt.Fprintf(w, "  __logicalName = %s\n", quoted(r.Name))
	}
	for _, key := range keys(r.Inputs) {
		if !IsIdentifier(string(key)) {
			continue // PCL has no way to write it
		}
		fmt.Fprintf(w, "  %s = ", key)
		w.value(r.Inputs[key], "  ")
		w.WriteString("\n")
	}
	w.options(r)
	w.WriteString("}\n")
}

func (w *writer) options(r Resource) {
	if r.Parent == "" && r.Provider == "" && !r.Protect {
		return
	}
	w.WriteString("  options {\n")
	if r.Parent != "" {
		fmt.Fprintf(w, "    parent = %s\n", r.Parent)
	}
	if r.Provider != "" {
		fmt.Fprintf(w, "    provider = %s\n", r.Provider)
	}
	if r.Protect {
		w.WriteString("    protect = true\n")
	}
	w.WriteString("  }\n")
}

// keys returns the properties that a program declares, sorted: without those that are null or for engines only.
func keys(m resource.PropertyMap) []resource.PropertyKey {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(key resource.PropertyKey) bool {
		return strings.HasPrefix(string(key), "__") || m[key].IsNull()
	})
}

// value writes a value; the lines that follow the first one begin with the indentation.
func (w *writer) value(v resource.PropertyValue, indent string) {
	switch {
	case v.IsSecret(), v.IsOutput() && v.OutputValue().Secret:
		w.secret()
	case v.IsOutput():
		w.value(v.OutputValue().Element, indent)
	case v.IsBool():
		fmt.Fprint(w, v.BoolValue())
	case v.IsNumber():
		w.WriteString(strconv.FormatFloat(v.NumberValue(), 'f', -1, 64))
	case v.IsString():
		w.text(v.StringValue())
	case v.IsArray():
		w.list(v.ArrayValue(), indent)
	case v.IsObject():
		w.object(v.ObjectValue(), indent)
	case v.IsAsset():
		w.asset(v.AssetValue())
	case v.IsArchive():
		w.archive(v.ArchiveValue(), indent)
	case v.IsResourceReference():
		w.WriteString(quoted(string(v.ResourceReferenceValue().URN)))
	default:
		w.WriteString("null")
	}
}

// text writes a text, or the resource whose id it is.
func (w *writer) text(text string) {
	if variable := w.references.to(w.resource, text); variable != "" {
		w.WriteString(variable + ".id")
		return
	}
	w.WriteString(quoted(text))
}

func (w *writer) secret() { fmt.Fprintf(w, "secret(%s)", quoted(redaction.Placeholder)) }

func (w *writer) list(list []resource.PropertyValue, indent string) {
	w.WriteString("[")
	for n, element := range list {
		if n > 0 {
			w.WriteString(", ")
		}
		w.value(element, indent)
	}
	w.WriteString("]")
}

func (w *writer) object(m resource.PropertyMap, indent string) {
	names := keys(m)
	if len(names) == 0 {
		w.WriteString("{}")
		return
	}
	w.WriteString("{\n")
	for _, key := range names {
		fmt.Fprintf(w, "%s  %s = ", indent, quoted(string(key)))
		w.value(m[key], indent+"  ")
		w.WriteString("\n")
	}
	w.WriteString(indent + "}")
}

func (w *writer) asset(a *asset.Asset) {
	switch {
	case a.IsPath():
		fmt.Fprintf(w, "fileAsset(%s)", quoted(a.Path))
	case a.IsURI():
		fmt.Fprintf(w, "remoteAsset(%s)", quoted(a.URI))
	default:
		fmt.Fprintf(w, "stringAsset(%s)", quoted(a.Text))
	}
}

func (w *writer) archive(a *archive.Archive, indent string) {
	switch {
	case a.IsPath():
		fmt.Fprintf(w, "fileArchive(%s)", quoted(a.Path))
	case a.IsURI():
		fmt.Fprintf(w, "remoteArchive(%s)", quoted(a.URI))
	default:
		members := resource.PropertyMap{}
		for name, member := range a.Assets {
			members[resource.PropertyKey(name)] = resource.NewPropertyValue(member)
		}
		w.WriteString("assetArchive(")
		w.object(members, indent)
		w.WriteString(")")
	}
}

// IsIdentifier reports whether a text can be the name of a variable or of an attribute.
func IsIdentifier(text string) bool {
	for n, r := range text {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (n == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return text != ""
}

// quoted returns text as a literal without interpolation.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for n, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		case (r == '$' || r == '%') && strings.HasPrefix(text[n+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
