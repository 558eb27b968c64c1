package s3

import (
	"fmt"
	"html/template"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// indexPage lists files with links that are relative to where the page lies. It depends on nothing but names and sizes, so that it
// changes only when they do.
func indexPage(title, from, root string, files []string) (string, error) {
	up := ""
	if from != "." {
		up = strings.Repeat("../", strings.Count(from, "/")+1)
	}
	type row struct{ Name, Link, Size string }
	var rows []row
	for _, file := range files {
		info, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		rows = append(rows, row{file, up + (&url.URL{Path: file}).EscapedPath(), bytesText(info.Size())})
	}
	var page strings.Builder
	err := indexTemplate.Execute(&page, map[string]any{"Title": title, "Rows": rows})
	return page.String(), err
}

func bytesText(n int64) string {
	const unit = 1024
	switch {
	case n < unit:
		return fmt.Sprintf("%d B", n)
	case n < unit*unit:
		return fmt.Sprintf("%.1f KiB", float64(n)/unit)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/unit/unit)
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
table { width: 100%; border-collapse: collapse; }
td { padding: .5rem 0; border-top: 1px solid var(--line); }
td:last-child { text-align: right; opacity: .65; font-variant-numeric: tabular-nums; white-space: nowrap; }
a { color: inherit; text-underline-offset: .2em; }
</style>
</head>
<body>
<h1>Files of {{.Title}}</h1>
<table>
{{- range .Rows}}
<tr><td><a href="{{.Link}}">{{.Name}}</a></td><td>{{.Size}}</td></tr>
{{- end}}
</table>
</body>
</html>
`))
