package s3

import (
	"html/template"
	"net/url"
	"strings"
)

// indexPage lists files with links that are relative to where the page lies. It depends on nothing but their names, so
// that a changed file changes only its own object.
func indexPage(title, from string, files []string) (string, error) {
	up := ""
	if from != "." {
		up = strings.Repeat("../", strings.Count(from, "/")+1)
	}
	type row struct{ Name, Link string }
	var rows []row
	for _, file := range files {
		rows = append(rows, row{file, up + (&url.URL{Path: file}).EscapedPath()})
	}
	var page strings.Builder
	err := indexTemplate.Execute(&page, map[string]any{"Title": title, "Rows": rows})
	return page.String(), err
}

var indexTemplate = template.Must(template.New("index").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Files of {{.Title}}</title>
<style>
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 15%, transparent); }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 44rem; margin: 4rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; font-weight: 600; }
ul { list-style: none; margin: 2rem 0; padding: 0; border-bottom: 1px solid var(--line); }
li { border-top: 1px solid var(--line); }
a { display: block; padding: .6rem 0; color: inherit; text-decoration: none;
  font-family: ui-monospace, monospace; font-size: .9rem; }
a:hover { text-decoration: underline; text-underline-offset: .25em; }
</style>
</head>
<body>
<h1>Files of {{.Title}}</h1>
<ul>
{{- range .Rows}}
<li><a href="{{.Link}}">{{.Name}}</a></li>
{{- end}}
</ul>
</body>
</html>
`))
