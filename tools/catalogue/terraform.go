package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// generate makes the rules of the types of a bridged provider whose id follows from inputs and configuration. Two
// sources that agree give high confidence; what one alone says, medium; and what sources contradict is left out.
func (f *file) generate(known facts) {
	f.bind(slices.Sorted(maps.Keys(known)))
	for _, tf := range slices.Sorted(maps.Keys(f.bound)) {
		token := f.bound[tf]
		if f.curated[tf] || f.sdk.Resources[token] == nil {
			continue
		}
		said := slices.Clone(known[tf])
		if f.Terraform == "google_" {
			said = append(said, known[strings.ReplaceAll(tf, "_", "")]...)
		}
		e, why := f.agreed(said, f.sdk.Resources[token])
		if why != "" {
			f.Left[token] = why
			continue
		}
		f.add(tf, token, e)
	}
	for token := range f.sdk.Resources {
		if _, ok := f.Left[token]; !ok && !f.hasRule(token) {
			f.Left[token] = "no source says where its id comes from"
		}
	}
}

func (f *file) hasRule(token string) bool {
	for _, e := range f.Types {
		if e.Token == token {
			return true
		}
	}
	_, ok := f.Types[token]
	return ok
}

// agreed compares what sources say about a type with how its documentation says that it is imported.
func (f *file) agreed(said []fact, r *resource) (entry, string) {
	if len(r.Imports) == 0 {
		return entry{}, "its documentation does not say how it is imported, so that it may not be read by its id alone"
	}
	template, sources := "", []string{}
	for _, s := range said {
		if s.Server {
			return entry{}, "its service assigns a part of the id"
		}
		s.Template = f.values(s.Template)
		switch {
		case template == "" && s.Template != "":
			template, sources = s.Template, append(sources, s.Source)
		case s.Template != "" && shape(s.Template) == shape(template):
			if !slices.Contains(sources, s.Source) {
				sources = append(sources, s.Source)
			}
		case s.Template != "" && !slices.ContainsFunc(r.Imports, func(i string) bool {
			return shape(f.values(braced(i))) == shape(s.Template)
		}):
			return entry{}, "sources contradict each other"
		}
	}
	imported, fits := f.imported(template, r)
	switch {
	case template == "" && imported == "" && len(said) > 0:
		return entry{}, "its provider assigns the id"
	case template == "" && imported == "":
		return entry{}, "no source says where its id comes from"
	case template == "":
		template, sources = imported, []string{"documentation"}
	case fits == contradicts:
		return entry{}, "its documentation imports it by another id"
	case fits == confirms:
		if imported != "" {
			template = imported
		}
		sources = append(sources, "documentation")
	}
	if strings.Join(sources, "") == "upjet-untested" {
		return entry{}, "one untested source alone says where its id comes from"
	}
	confidence := "medium"
	if independent(sources) > 1 {
		confidence = "high"
	}
	return entry{Rules: []rule{{Read: template, Confidence: confidence, Source: strings.Join(sources, " + ")}}}, ""
}

// independent counts the sources that do not come from each other: the documentation of GCP's types is made from Magic
// Modules.
func independent(sources []string) int {
	if slices.Contains(sources, "magic-modules") && slices.Contains(sources, "documentation") {
		return len(sources) - 1
	}
	return len(sources)
}

// fit is how a template and an example of an id go together.
type fit int

const (
	silent fit = iota
	confirms
	contradicts
)

// imported compares a template with the ids in the documentation. Without a template, it returns the one that the
// documentation has; and with one, the same in the spelling of the documentation.
func (f *file) imported(template string, r *resource) (string, fit) {
	switch f.Package {
	case "gcp":
		return f.importedTemplate(template, r)
	case "azure":
		return f.importedPath(template, r)
	}
	return f.importedExample(template, r)
}

// access finds the types that give access to a resource. Their id is the resource's, the role and the member.
var access = regexp.MustCompile(`(?i)iam(member|binding|policy)$`)

// importedTemplate is imported for documentation with templates: any of them is an accepted id.
func (f *file) importedTemplate(template string, r *resource) (string, fit) {
	best, suffix := "", ""
	for _, n := range []string{"role", "member"} { // the documentation leaves these out of what it shows of IAM
		if _, ok := r.Inputs[n]; ok && access.MatchString(r.Token) {
			suffix += " ${" + n + "}"
		}
	}
	for _, i := range r.Imports {
		if strings.ContainsAny(i, "*% ") || !strings.Contains(i, "{{") {
			continue
		}
		form := f.values(braced(i)) + suffix
		if template != "" && shape(form) == shape(template) {
			return template, confirms
		}
		missing := func(v string) bool { return !scalar(r.Inputs[camel(v)].Kind) }
		if best == "" && !slices.ContainsFunc(variables(form), missing) {
			best = form
		}
	}
	switch {
	case template == "" || len(r.Imports) == 0:
		return best, silent
	case best == "":
		return "", silent
	}
	return "", contradicts
}

// identifier is what a server makes: a UUID, a number, or a prefix with hexadecimal digits.
var identifier = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f]{4}-|\d+$|[a-z]+-[0-9a-f]{5,}$)`)

// importedExample is imported for documentation with examples.
func (f *file) importedExample(template string, r *resource) (string, fit) {
	names := variables(template)
	for _, n := range names {
		if len(names) > 1 && slices.ContainsFunc(r.Imports, matcher(template)) {
			return template, confirms
		}
		identity := slices.Equal(r.Identity, []string{camel(n)})
		whole := !strings.ContainsAny(r.Imports[0], "/:,|#") // else the prose may name a part
		if len(names) == 1 && template == "${"+n+"}" && (identity || whole && named(r.Prose, n)) {
			return template, confirms
		}
	}
	switch {
	case template == "" && len(r.Identity) == 1 && r.Inputs[r.Identity[0]].Kind == "string" &&
		(!strings.ContainsAny(r.Imports[0], "/:,| ") || strings.HasSuffix(r.Identity[0], "Arn")):
		return "${" + snake(r.Identity[0]) + "}", silent
	case template == "" || len(r.Imports) == 0:
		return "", silent
	case len(names) > 1 && !strings.HasPrefix(template, "arn:"),
		strings.HasPrefix(template, "arn:") != strings.HasPrefix(r.Imports[0], "arn:"):
		return "", contradicts
	case identifier.MatchString(r.Imports[0]):
		return "", contradicts
	case strings.HasPrefix(template, "arn:") && slices.ContainsFunc(r.Imports, matcher(template)):
		return template, confirms
	case len(names) == 1 && strings.ContainsAny(r.Imports[0], "/:,|"):
		return "", contradicts
	}
	return "", silent
}

// named reports whether a text says that something is imported using a property.
func named(prose, property string) bool {
	quoted := "`(" + regexp.QuoteMeta(property) + "|" + regexp.QuoteMeta(camel(property)) + ")`"
	words := strings.ReplaceAll(regexp.QuoteMeta(property), "_", "[ _]")
	return regexp.MustCompile("(?i)using [^.`]*(" + quoted + `|\b` + words + `\b)`).MatchString(prose)
}

// matcher returns whether an example is an id of a template's form.
func matcher(template string) func(string) bool {
	var form strings.Builder
	at := 0
	form.WriteString("^")
	for _, m := range variable.FindAllStringSubmatchIndex(template, -1) {
		form.WriteString(regexp.QuoteMeta(template[at:m[0]]))
		name := template[m[2]:m[3]]
		if strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_arn") || strings.HasSuffix(name, "arn") {
			form.WriteString("(.+)")
		} else {
			form.WriteString("([^/]+)")
		}
		at = m[1]
	}
	form.WriteString(regexp.QuoteMeta(template[at:]) + "$")
	re := regexp.MustCompile(form.String())
	return func(example string) bool { return re.MatchString(example) }
}

// shape is a template without the names of its variables.
func shape(template string) string { return variable.ReplaceAllString(template, "${}") }

// values replaces inputs that have a default in the provider's configuration by values of the package.
func (f *file) values(template string) string {
	if f.Package != "gcp" {
		return template
	}
	for _, name := range []string{"project", "region", "zone"} {
		template = strings.ReplaceAll(template, "${"+name+"}", "${value:"+name+"}")
	}
	return template
}
