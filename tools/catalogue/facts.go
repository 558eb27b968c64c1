package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// fact is what one source says about the id of a type.
type fact struct {
	Template string // with variables ${name} in the names of the source; empty if the source has none
	Source   string
	Server   bool // the source says that the server assigns a part of the id
}

// facts has what the sources say, by type.
type facts map[string][]fact

// readExternalNames adds the table of a Go file that maps Terraform's types to the origin of their ids.
func (f facts) readExternalNames(path, source string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		entry, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, ok := literal(entry.Key)
		if !ok || !strings.Contains(key, "_") {
			return true
		}
		if t, ok := templateOf(entry.Value); ok {
			f[key] = append(f[key], fact{Template: t, Source: source})
		}
		return false
	})
	return nil
}

// templateOf returns the template of an id; empty if the server assigns it, and false if the source does not say.
func templateOf(e ast.Expr) (string, bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		switch nameOf(e) {
		case "NameAsIdentifier":
			return "${name}", true
		case "IdentifierFromProvider":
			return "", true
		}
		return "", false
	}
	var args []string
	for _, a := range call.Args {
		text, ok := literal(a)
		if !ok {
			return "", false
		}
		args = append(args, text)
	}
	variables := func(names []string) (out []string) {
		for _, n := range names {
			out = append(out, "${"+n+"}")
		}
		return out
	}
	switch name := nameOf(call.Fun); {
	case name == "ParameterAsIdentifier" && len(args) == 1:
		return "${" + args[0] + "}", true
	case name == "TemplatedStringAsIdentifier" && len(args) == 2:
		return translated(args[1], args[0])
	case name == "TemplatedStringAsIdentifierWithNoName" && len(args) == 1:
		return translated(args[0], "")
	case name == "FormattedIdentifierFromProvider" && len(args) > 1:
		return strings.Join(variables(args[1:]), args[0]), true
	case name == "FormattedIdentifierUserDefinedNameLast" && len(args) > 1:
		return strings.Join(variables(append(args[2:], args[0])), args[1]), true
	case name == "FormattedIdentifierUserDefinedNameFirst" && len(args) > 1:
		return strings.Join(variables(append(args[:1:1], args[2:]...)), args[1]), true
	}
	return "", false
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// literal evaluates an expression of strings: a literal, a sum, or one of the functions that make ARNs.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, ok2 := literal(e.Y)
		return left + right, ok && ok2
	case *ast.CallExpr:
		region, ok := map[string]string{
			"fullARNTemplate": "{{ .setup.configuration.region }}", "regionlessARNTemplate": "",
		}[nameOf(e.Fun)]
		if !ok || len(e.Args) != 2 {
			return "", false
		}
		service, ok := literal(e.Args[0])
		resource, ok2 := literal(e.Args[1])
		return "arn:{{ .setup.client_metadata.partition }}:" + service + ":" + region +
			":{{ .setup.client_metadata.account_id }}:" + resource, ok && ok2
	}
	return "", false
}

var (
	moustache = regexp.MustCompile(`\{\{\s*\.([\w.]+)\s*\}\}`)
	settings  = map[string]string{
		"setup.configuration.region": "value:region", "setup.configuration.project": "value:project",
		"setup.configuration.subscription_id": "value:subscription", "setup.configuration.account_id": "value:account",
		"setup.client_metadata.account_id": "value:account", "setup.client_metadata.partition": "value:partition",
	}
)

// translated turns a template of the source into one of a rule. Name is the parameter that a user names it by.
func translated(template, name string) (string, bool) {
	known, server := true, false
	template = moustache.ReplaceAllStringFunc(template, func(s string) string {
		path := moustache.FindStringSubmatch(s)[1]
		parameter, ok := strings.CutPrefix(path, "parameters.")
		switch {
		case path == "external_name":
			server = server || name == ""
			return "${" + name + "}"
		case ok:
			return "${" + parameter + "}"
		case settings[path] != "":
			return "${" + settings[path] + "}"
		}
		known = false
		return s
	})
	switch {
	case !known || strings.Contains(template, "{{"):
		return "", false
	case server || !strings.Contains(template, "${"):
		return "", true
	case strings.ContainsAny(variable.ReplaceAllString(template, ""), "{}"):
		return "", false
	}
	return template, true
}

// readTable reads the rows of a table with a header.
func readTable(path string) ([][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var rows [][]string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		rows = append(rows, strings.Split(lines.Text(), "\t"))
	}
	if len(rows) < 2 {
		return nil, fmt.Errorf("%s has no rows", path)
	}
	return rows[1:], nil
}

var doubleBraces = regexp.MustCompile(`\{\{%?([\w.-]+)\}\}`)

// braced turns {{name}} into ${name}.
func braced(template string) string {
	return doubleBraces.ReplaceAllStringFunc(template, func(s string) string {
		return "${" + snake(doubleBraces.FindStringSubmatch(s)[1]) + "}"
	})
}

// readGCP adds the table of Magic Modules, by names of Terraform without underscores.
func (f facts) readGCP(path, source string) error {
	rows, err := readTable(path)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if len(row) < 4 {
			continue
		}
		key := "google" + strings.ToLower(strings.ReplaceAll(row[0], ".", ""))
		t := ""
		if row[1] == "id from inputs" {
			t = braced(row[2])
		}
		f[key] = append(f[key], fact{t, source, t == ""})
	}
	return nil
}

// readAll reads the files of a directory whose names match a pattern.
func readAll(dir, pattern string, read func(path string) error) error {
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s has no %s", dir, pattern)
	}
	for _, p := range paths {
		if err := read(p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}
