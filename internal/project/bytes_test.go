package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// Bytes that are no UTF-8 would be others in the program, and in the file after the next config set.
func TestBytesInAListOrAnObjectAreRefusedBeforeTheyBecomeOthers(t *testing.T) {
	const project, bytes, says = "name: shop\nruntime: yaml\n", "!!binary gIGC", ": the value of shop:a has bytes"
	for name, c := range map[string]struct{ project, text, says string }{
		"in a list":               {"", "config:\n  shop:a:\n    - " + bytes + "\n", "line 3" + says},
		"in an object":            {"", "config:\n  shop:a: {b: {c: " + bytes + "}}\n", "line 2" + says},
		"as a key":                {"", "config:\n  shop:a: {? " + bytes + " : x}\n", "line 2" + says},
		"by an alias":             {"", "x: &q " + bytes + "\nconfig:\n  shop:a: [*q]\n", "line 1" + says},
		"in a list with an alias": {"", "x: &q [" + bytes + "]\nconfig:\n  shop:a: *q\n", "line 1" + says},
		"by the tag's long name": {"", "config:\n  shop:a: [!<tag:yaml.org,2002:binary> gIGC]\n",
			"line 2" + says},
		"alone, which Values refuses":   {"", "config:\n  shop:a: " + bytes + "\n", ""},
		"that are text":                 {"", "config:\n  shop:a: [!!binary aGVsbG8=]\n", ""},
		"in a default of the project":   {"config:\n  a: {default: [" + bytes + "]}\n", "", "line 4: the value of a"},
		"as a default of the project":   {"config:\n  a: {default: " + bytes + "}\n", "", "line 4: the value of a"},
		"as a value of the project":     {"config:\n  aws:a: {value: " + bytes + "}\n", "", "line 4: the value of aws:a"},
		"for short in the project":      {"config: {aws:a: " + bytes + "}\n", "", "line 3: the value of aws:a"},
		"in JSON that is in ISO 8859-1": {"", "{\"config\": {\"shop:a\": [\"caf\xe9\"]}}", "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := "Pulumi.dev.yaml"
			if strings.HasPrefix(c.text, "{") {
				file = "Pulumi.dev.json"
			}
			for name, text := range map[string]string{"Pulumi.yaml": project + c.project, file: c.text} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p, err := Find(dir)
			if err == nil {
				_, err = p.StackIn("dev", filepath.Join(dir, file))
			}
			refused := deployments.CodeOf(err) == deployments.CodeInvalid && strings.Contains(err.Error(), c.says)
			if c.says == "" && err != nil || c.says != "" && !refused {
				t.Errorf("%v", err)
			}
		})
	}
}
