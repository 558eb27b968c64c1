package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/template"
)

//go:embed page.md
var pageText string

// clouds are the packages whose most common types the page lists.
var clouds = []struct{ pkg, name string }{
	{"aws", "AWS"}, {"gcp", "Google Cloud"}, {"azure", "Azure"}, {"kubernetes", "Kubernetes"},
}

// leastSettled is how many of a cloud's common types must have a rule.
const leastSettled = 45

// row is what the page says about a type, or a package.
type row struct{ Cells []string }

// writePage writes the page about the catalogue.
func writePage(path string, files []*file, hand []curated) error {
	var page struct {
		Packages []row
		Types    int
		Clouds   []cloud
		Left     []row
	}
	for i, f := range files {
		page.Packages = append(page.Packages, f.summary())
		page.Types += len(f.Types)
		for _, c := range clouds {
			if c.pkg == f.Package {
				one, err := f.cloud(c.name, &hand[i])
				if err != nil {
					return err
				}
				page.Clouds = append(page.Clouds, one)
			}
		}
		page.Left = append(page.Left, f.leftOut()...)
	}
	slices.SortFunc(page.Clouds, func(a, b cloud) int { return order(a.Name) - order(b.Name) })
	var b bytes.Buffer
	t := template.Must(template.New("page").Funcs(template.FuncMap{"row": func(r row) string {
		return "| " + strings.Join(r.Cells, " | ") + " |"
	}}).Parse(pageText))
	if err := t.Execute(&b, page); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func order(name string) int {
	for i, c := range clouds {
		if c.name == name {
			return i
		}
	}
	return -1
}

// summary is the row of a package.
func (f *file) summary() row {
	kinds, marked, high := map[string]int{}, 0, 0
	for _, e := range f.Types {
		kinds[e.Rules[0].kind()]++
		if e.needsMark() {
			marked++
		}
		if e.Rules[0].Confidence == "high" {
			high++
		}
	}
	types, checked := "", "not checked"
	if f.sdk != nil {
		types, checked = fmt.Sprint(len(f.sdk.Resources)), f.Checked
	}
	name := "[" + f.Package + "](../catalogue/" + f.Package + ".yaml)"
	with := fmt.Sprint(len(f.Types))
	if len(f.Rules) > 0 {
		with = "all"
	}
	return row{[]string{name, with, types, count(high), count(kinds["read"]), count(kinds["list"]), count(marked),
		checked}}
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func (r *rule) kind() string {
	switch {
	case r.Read != "":
		return "read"
	case r.List != nil:
		return "list"
	case r.Invoke != nil:
		return "invoke"
	}
	return "create again"
}

func (e entry) needsMark() bool {
	return !slices.ContainsFunc(e.Rules, func(r rule) bool { return r.Mark == "" })
}

// cloud is what the page says about the common types of a cloud.
type cloud struct {
	Name                    string
	Types, Settled, Marked  int
	Documented, DocumentedN int // of the types that the documentation makes most often, how many have a rule
	Rows                    []row
}

// cloud lists the common types, which must exist and almost all have a rule.
func (f *file) cloud(name string, c *curated) (cloud, error) {
	one := cloud{Name: name}
	byToken := map[string]entry{}
	for key, e := range f.Types {
		if e.Token != "" {
			key = e.Token
		}
		byToken[key] = e
	}
	find := func(token string) (entry, bool) {
		e, ok := byToken[token]
		if !ok && len(f.Rules) > 0 {
			e, ok = entry{Rules: f.Rules[:2]}, true
		}
		return e, ok
	}
	for _, token := range strings.Fields(c.Popular) {
		if c.Terraform == "" {
			token = f.Package + ":" + token
		}
		if f.sdk.Resources[token] == nil {
			return one, fmt.Errorf("%s is no type of %s", token, f.Package)
		}
		one.Types++
		cells := []string{"`" + token + "`", "none", f.Left[token], ""}
		if e, ok := find(token); ok {
			one.Settled++
			cells = []string{"`" + token + "`", e.describe(), e.Rules[0].Confidence + ": " + e.Rules[0].Source, c.Needs[token]}
			if e.needsMark() {
				one.Marked++
				cells[3] = "a mark"
			}
		}
		one.Rows = append(one.Rows, row{cells})
	}
	if one.Types != 50 || one.Settled < leastSettled {
		return one, fmt.Errorf("%d of %d common types of %s have a rule", one.Settled, one.Types, name)
	}
	tokens := slices.SortedFunc(maps.Keys(f.sdk.Pages), func(a, b string) int {
		return cmp.Or(f.sdk.Pages[b]-f.sdk.Pages[a], strings.Compare(a, b))
	})
	for _, token := range tokens[:min(50, len(tokens))] {
		one.DocumentedN++
		if _, ok := find(token); ok {
			one.Documented++
		}
	}
	return one, nil
}

// describe says how a type is found.
func (e entry) describe() string {
	var all []string
	for _, r := range e.Rules {
		switch {
		case r.Read != "":
			all = append(all, code(r.Read))
		case r.Invoke != nil:
			all = append(all, code(fmt.Sprint(r.Invoke["function"])))
		case r.List != nil:
			all = append(all, "list")
		}
	}
	return strings.Join(all, ", ")
}

func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// leftOut says for how many types of a package there is no rule, and why.
func (f *file) leftOut() []row {
	reasons := map[string]int{}
	for _, why := range f.Left {
		if strings.HasSuffix(why, "is no input") {
			why = "a part of its id is no input"
		}
		reasons[why]++
	}
	var rows []row
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		rows = append(rows, row{[]string{f.Package, fmt.Sprint(reasons[why]), why}})
	}
	return rows
}
