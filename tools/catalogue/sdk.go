package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// sdk is what a package of the npm registry says about the types and functions of a provider.
type sdk struct {
	Package, Version string
	Resources        map[string]*resource // by token
	Functions        map[string]*resource // by token; Inputs are its arguments
	Pages            map[string]int       // how many pages of the documentation have an example that makes the type
}

// resource is a type, or a function.
type resource struct {
	Token    string
	Inputs   map[string]input
	Results  map[string]bool // of a function
	Imports  []string        // the ids, or the forms of ids, in the section about import
	Prose    string          // the text of that section
	Identity []string        // the required properties of the identity, in Terraform's names
}

// input is a property that a program may set.
type input struct {
	Kind     string // string, number, bool, map, list, object or other
	Required bool
	Secret   bool // the provider keeps it secret, whatever the program says
}

var (
	tokenLine    = regexp.MustCompile(`__pulumiType = '([^']+)'`)
	secretLine   = regexp.MustCompile(`resourceInputs\["(\w+)"\] = .*pulumi\.secret\(`)
	invokeLine   = regexp.MustCompile(`runtime\.invoke\("([^"]+)"`)
	resultHeader = regexp.MustCompile(`^export interface Get\w+Result \{`)
	resultLine   = regexp.MustCompile(`^    readonly (\w+)\??: `)
	argsHeader   = regexp.MustCompile(`^export interface (\w+)Args \{`)
	propertyLine = regexp.MustCompile(`^    (\w+)(\??): (.*)$`)
	importLine   = regexp.MustCompile(`pulumi import (\S+) \S+ (.+)$`)
	templateLine = regexp.MustCompile("^ \\* \\* `([^`]*\\{\\{[^`]*)`$")
	identityLine = regexp.MustCompile("^ \\* \\* `(\\w+)` ")
	exampleLine  = regexp.MustCompile(`= new (\w+)\.([\w.]+)\("`)
)

// reader reads the files of a package, which are named by their paths without ending.
type reader struct {
	sdk           *sdk
	declared      map[string]*resource
	tokens, calls map[string]string          // of types and of functions
	secrets       map[string][]string        // inputs
	made          map[string]map[string]bool // files by what an example in them makes
}

// readSDK reads the archive of an npm package.
func readSDK(path string) (*sdk, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	s := &sdk{Resources: map[string]*resource{}, Functions: map[string]*resource{}, Pages: map[string]int{}}
	r := &reader{s, map[string]*resource{}, map[string]string{}, map[string]string{}, map[string][]string{},
		map[string]map[string]bool{}}
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		r.file(strings.TrimPrefix(h.Name, "package/"), string(text))
	}
	r.finish()
	if len(s.Resources)+len(s.Functions) == 0 {
		return nil, fmt.Errorf("%s has no resource types", path)
	}
	return s, nil
}

func (r *reader) file(name, text string) {
	switch {
	case name == "package.json":
		r.sdk.describe(text)
	case strings.HasSuffix(name, ".d.ts") && !strings.HasPrefix(name, "types/"):
		stem := strings.TrimSuffix(name, ".d.ts")
		r.declared[stem] = declaration(text)
		for _, m := range exampleLine.FindAllStringSubmatch(text, -1) {
			if r.made[m[2]] == nil {
				r.made[m[2]] = map[string]bool{}
			}
			r.made[m[2]][stem] = true
		}
	case strings.HasSuffix(name, ".js"):
		stem := strings.TrimSuffix(name, ".js")
		if m := tokenLine.FindStringSubmatch(text); m != nil {
			r.tokens[stem] = m[1]
			for _, m := range secretLine.FindAllStringSubmatch(text, -1) {
				r.secrets[stem] = append(r.secrets[stem], m[1])
			}
		} else if m := invokeLine.FindStringSubmatch(text); m != nil {
			r.calls[stem] = m[1]
		}
	}
}

// finish puts together what was in different files.
func (r *reader) finish() {
	for stem, token := range r.tokens {
		if d := r.declared[stem]; d != nil && strings.Count(token, ":") == 2 {
			d.Token, r.sdk.Resources[token] = token, d
			for _, name := range r.secrets[stem] {
				if in, ok := d.Inputs[name]; ok {
					in.Secret = true
					d.Inputs[name] = in
				}
			}
			r.sdk.Pages[token] = len(r.made[classOf(stem, token)])
		}
	}
	for stem, token := range r.calls {
		if d := r.declared[stem]; d != nil {
			d.Token, r.sdk.Functions[token] = token, d
		}
	}
}

// classOf returns the name by which examples make a type: its module, unless that is the package itself, and its class.
func classOf(stem, token string) string {
	class := token[strings.LastIndex(token, ":")+1:]
	if i := strings.LastIndex(stem, "/"); i >= 0 {
		return strings.ReplaceAll(stem[:i], "/", ".") + "." + class
	}
	return class
}

var packageField = regexp.MustCompile(`"(name|version)": "([^"]+)"`)

func (s *sdk) describe(text string) {
	for _, m := range packageField.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] == "name" && s.Package == "":
			_, s.Package, _ = strings.Cut(m[2], "/")
		case m[1] == "version" && s.Version == "":
			s.Version = strings.TrimPrefix(m[2], "v")
		}
	}
}

// declaration reads the inputs and the section about import of a file of declarations.
func declaration(text string) *resource {
	r := &resource{Inputs: map[string]input{}, Results: map[string]bool{}}
	var prose []string
	section, inside, results := "", false, false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, " * ## "), strings.HasPrefix(line, " * ### "), strings.HasPrefix(line, " * #### "):
			heading := strings.TrimLeft(line, " *#")
			if strings.HasPrefix(line, " * ## ") || section == "" || heading == "Required" || heading == "Optional" {
				section = heading
			}
			if heading == "Identity Schema" {
				section = "Import"
			}
		case line == " */":
			section = ""
		case section == "Required":
			if m := identityLine.FindStringSubmatch(line); m != nil {
				r.Identity = append(r.Identity, m[1])
			} else if strings.Contains(line, "Using `pulumi import`") {
				section = "Import"
			}
		case section == "Optional" && strings.Contains(line, "pulumi import"):
			section = "Import"
		}
		if section == "Import" {
			prose = append(prose, strings.TrimPrefix(strings.TrimPrefix(line, " *"), " "))
			if m := templateLine.FindStringSubmatch(line); m != nil {
				r.Imports = append(r.Imports, m[1])
			}
		}
		if m := importLine.FindStringSubmatch(line); m != nil && strings.HasPrefix(line, " *") {
			r.Imports = append(r.Imports, strings.Trim(strings.TrimSpace(m[2]), `"'`))
		}
		switch m := propertyLine.FindStringSubmatch(line); {
		case argsHeader.MatchString(line):
			inside = true
		case resultHeader.MatchString(line):
			results = true
		case line == "}":
			inside, results = false, false
		case results && resultLine.MatchString(line):
			r.Results[resultLine.FindStringSubmatch(line)[1]] = true
		case inside && m != nil:
			next := ""
			if i+1 < len(lines) {
				next = lines[i+1]
			}
			r.Inputs[m[1]] = input{Kind: kindOf(m[3], next), Required: m[2] == ""}
		}
	}
	r.Prose = strings.Join(prose, "\n")
	return r
}

// kindOf returns the kind of a type of TypeScript, which may go on in the next line.
func kindOf(t, next string) string {
	t = strings.TrimPrefix(t, "pulumi.Input<")
	switch {
	case strings.HasPrefix(t, "{") && strings.Contains(next, "[key: string]"):
		return "map"
	case strings.HasPrefix(t, "pulumi.Input<"), strings.Contains(strings.SplitN(t, "|", 2)[0], "[]"):
		return "list"
	case strings.HasPrefix(t, "string"), strings.HasPrefix(t, "enums."):
		return "string"
	case strings.HasPrefix(t, "number"):
		return "number"
	case strings.HasPrefix(t, "boolean"):
		return "bool"
	case strings.HasPrefix(t, "inputs."), strings.HasPrefix(t, "{"):
		return "object"
	}
	return "other"
}
