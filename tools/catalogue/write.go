package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// write writes the catalogue of a package: YAML in which each value is JSON on a line of its own.
func (f *file) write(dir string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made by tools/catalogue. What it reads stands in sources; rules refer to them by their names.\n")
	line := func(indent, key string, v any) error {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		err := e.Encode(v)
		fmt.Fprintf(&b, "%s%s: %s", indent, key, text.Bytes())
		return err
	}
	for _, h := range []struct {
		key string
		v   any
		set bool
	}{
		{"package", f.Package, true}, {"terraform", f.Terraform, f.Terraform != ""},
		{"versions", f.Versions, f.Versions != ""}, {"checked", f.Checked, f.Checked != ""},
		{"sources", f.Sources, true}, {"values", f.Values, len(f.Values) > 0},
		{"functions", f.Functions, len(f.Functions) > 0}, {"rules", f.Rules, len(f.Rules) > 0},
	} {
		if h.set {
			if err := line("", h.key, h.v); err != nil {
				return err
			}
		}
	}
	if len(f.Types) > 0 {
		fmt.Fprintln(&b, "types:")
	}
	for _, key := range slices.Sorted(maps.Keys(f.Types)) {
		if err := line("  ", quoted(key), f.Types[key]); err != nil {
			return err
		}
	}
	if f.Terraform != "" {
		fmt.Fprintln(&b, "without: # types that have no rule, so that the plugin is not asked for their names")
		for _, token := range slices.Sorted(maps.Keys(f.sdk.Resources)) {
			if !f.hasRule(token) {
				fmt.Fprintf(&b, "  %s: \"\"\n", quoted(token))
			}
		}
	}
	if f.Terraform == "" && len(f.Rules) > 0 && len(f.Left) > 0 {
		fmt.Fprintln(&b, "without: # types that have no rule")
		for _, token := range slices.Sorted(maps.Keys(f.Left)) {
			fmt.Fprintf(&b, "  %s: \"\"\n", quoted(token))
		}
	}
	return os.WriteFile(filepath.Join(dir, f.Package+".yaml"), b.Bytes(), 0o644)
}

func quoted(key string) string { return fmt.Sprintf("%q", key) }
