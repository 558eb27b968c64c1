//go:build unix

// Package languages carries a YAML, a Node and a Go program through a stack's life: they deploy, run unchanged, change,
// replace, are refreshed after somebody else changed or removed what they made, and destroy.
package languages

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// The tests of one language share a service, on which packages are installed and compiled once.

func TestNodePrograms(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t, harness.Binary())
	t.Run("a program with a dynamic provider lives", func(t *testing.T) { nodeProgramLives(t, h) })
	t.Run("a program that is killed is started again", func(t *testing.T) {
		soaktest.Only(t)
		startedAgain(t, h, projectOf(t, "typescript", "index.ts", chainInNode))
	})
	t.Run("transforms are applied in order", func(t *testing.T) {
		soaktest.Only(t)
		dir := projectOf(t, "typescript", "index.ts", transformsInNode)
		transforms(t, h, dir, map[string]string{"first": "own box stack", "second": "late stack",
			"group-auto": "remote stack", "group-named": "remote stack"})
		optionsByTransforms(t, h.Deployctl(dir))
	})
	t.Run("a policy pack checks a program", func(t *testing.T) { nodePolicies(t, h) })
	t.Run("a component of a plugin that is source code is made", func(t *testing.T) { sourcePlugin(t, h) })
	t.Run("two that need each other are bound", func(t *testing.T) {
		soaktest.Only(t)
		programBindingLives(t, h, projectOf(t, "typescript", "index.ts", boundInNode))
	})
	t.Run("hooks run around steps", func(t *testing.T) {
		soaktest.Only(t)
		hooks(t, h, projectOf(t, "typescript", "index.ts", hooksInNode))
	})
	t.Run("an after hook that was killed runs again", func(t *testing.T) {
		soaktest.Only(t)
		afterHookRunsAgain(t, h, projectOf(t, "typescript", "index.ts", hooksInNode))
	})
}

func TestGoPrograms(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := harness.NewHome(t, harness.Binary())
	t.Run("a program lives", func(t *testing.T) { goProgramLives(t, h) })
	t.Run("a program that is killed is started again", func(t *testing.T) {
		startedAgain(t, h, projectOf(t, "go", "main.go", chainInGo))
	})
	t.Run("two that need each other are bound", func(t *testing.T) {
		programBindingLives(t, h, projectOf(t, "go", "main.go", boundInGo))
	})
	t.Run("transforms are applied in order", func(t *testing.T) {
		said := transforms(t, h, projectOf(t, "go", "main.go", transformsInGo), map[string]string{"first": "own box stack"})
		if !strings.Contains(said, "the hook is told of first near 1") {
			t.Errorf("the update says\n%s", said)
		}
	})
}

// useStack makes the stack dev of a project, and removes it with the test. Programs of one stack share what is
// installed for them, which takes a Node program longest.
func useStack(t *testing.T, p *harness.Tool) {
	t.Helper()
	p.Must(t, "stack", "init", "dev")
	t.Cleanup(func() { p.Must(t, "stack", "rm", "dev", "--yes", "--force") })
}

// projectOf makes a project of an example with another program.
func projectOf(t *testing.T, example, file, program string) (dir string) {
	t.Helper()
	dir = harness.Example(t, example)
	harness.Files{file: program}.Write(t, dir)
	return dir
}

func TestYAMLPrograms(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t, harness.Binary())
	t.Run("a program lives", func(t *testing.T) { yamlProgramLives(t, h) })
	t.Run("two that need each other are bound", func(t *testing.T) { yamlBindingLives(t, h) })
	t.Run("a program keeps a value and reads another stack", func(t *testing.T) {
		soaktest.Only(t)
		yamlProgramKeeps(t, h)
	})
}

func yamlProgramLives(t *testing.T, h *harness.Home) {
	cloud, env := harness.Cloud(t)
	dir := t.TempDir()
	harness.Files{"Pulumi.yaml": `
name: yaml
runtime: yaml
config:
  size: {type: integer, default: 1}
  zone: {type: string, default: a}
resources:
  network:
    type: fake:index:Auto
    properties: {zone: "${zone}"}
  server:
    type: fake:index:Server
    properties: {size: "${size}", attachedTo: "${network.arn}", secretText: hush}
outputs:
  arn: ${server.arn}
`}.Write(t, dir)
	p := h.Deployctl(dir, env)
	p.Must(t, "stack", "init", "dev")
	fresh, unchanged := harness.Changes{"create": 3}, harness.Changes{"same": 3} // with the stack
	p.Expect(t, fresh, "preview")
	p.Expect(t, fresh, "up")
	p.Expect(t, unchanged, "up")

	p.Must(t, "config", "set", "size", "2")
	p.Expect(t, harness.Changes{"update": 1, "same": 2}, "up")
	before := p.Outputs(t)["arn"]
	p.Must(t, "config", "set", "zone", "b")
	p.Expect(t, harness.Changes{"replace": 2, "same": 1}, "up") // the server hangs on the network
	if after := p.Outputs(t)["arn"]; after == before {
		t.Errorf("the replaced server is still %s", after)
	}

	servers, err := cloud.Objects(t.Context(), "server")
	harness.Must(t, err)
	if len(servers) != 1 {
		t.Fatalf("there are %d servers", len(servers))
	}
	servers[0].Properties["size"] = 9
	harness.Must(t, cloud.Put(t.Context(), servers[0]))
	p.Expect(t, harness.Changes{"update": 1, "same": 2}, "refresh")
	p.Expect(t, harness.Changes{"update": 1, "same": 2}, "up") // back to what the program says
	harness.Must(t, cloud.Remove(t.Context(), "server", servers[0].ID))
	p.Expect(t, harness.Changes{"delete": 1, "same": 2}, "refresh")
	p.Expect(t, harness.Changes{"create": 1, "same": 2}, "up")

	p.Expect(t, harness.Changes{"delete": 3}, "destroy")
	if left, err := cloud.Objects(t.Context(), ""); err != nil || len(left) > 0 {
		t.Errorf("the cloud still has %v (%v)", left, err)
	}
}

// yamlProgramKeeps uses the resources of the package "pulumi", whose schema the host of YAML gets from the service.
func yamlProgramKeeps(t *testing.T, h *harness.Home) {
	project := func(definition string) *harness.Tool {
		dir := t.TempDir()
		harness.Files{"Pulumi.yaml": definition}.Write(t, dir)
		return h.Deployctl(dir)
	}
	other := project("name: other\nruntime: yaml\noutputs: {city: Oslo, key: {fn::secret: hush-key}}\n")
	other.Must(t, "stack", "init", "dev")
	other.Must(t, "up", "--yes")
	p := project(`
name: keeping
runtime: yaml
config:
  word: {type: string, default: first}
resources:
  kept:
    type: pulumi:index:Stash
    properties: {input: {word: "${word}"}}
  hidden:
    type: pulumi:index:Stash
    properties: {input: {fn::secret: hush-input}}
  other:
    type: pulumi:pulumi:StackReference
    properties: {name: organization/other/dev}
outputs:
  kept: ${kept.output["word"]}
  last: ${kept.input["word"]}
  hidden: ${hidden.output}
  city: ${other.outputs["city"]}
  key: ${other.outputs["key"]}
`)
	p.Must(t, "stack", "init", "dev")
	says := func(kept, last string) {
		t.Helper()
		out := p.Outputs(t)
		if out["kept"] != kept || out["last"] != last || out["city"] != "Oslo" {
			t.Errorf("the outputs are %v", out)
		}
		for name, text := range map[string]string{"hidden": "hush-input", "key": "hush-key"} {
			if out[name] != text || strings.Contains(p.Must(t, "stack", "export"), text) {
				t.Errorf("the output %s is %v, or not secret", name, out[name])
			}
		}
	}
	p.Must(t, "up", "--yes")
	says("first", "first")
	p.Must(t, "config", "set", "word", "second")
	if changed := p.Update(t, "up"); changed.Changes["update"] != 1 {
		t.Errorf("another input makes %v", changed.Changes)
	}
	says("first", "second")
	p.Must(t, "refresh", "--yes")
	says("first", "second")
	p.Must(t, "up", "--yes", "--replace", "**::kept")
	says("second", "second")
	p.Must(t, "destroy", "--yes")
}

func nodeProgramLives(t *testing.T, h *harness.Home) {
	p := h.Deployctl(harness.Example(t, "typescript"))
	post := t.TempDir()
	useStack(t, p)
	p.Must(t, "config", "set", "directory", filepath.Join(post, "first"))
	p.Expect(t, harness.Changes{"create": 4}, "up") // the stack, the file, the bucket and the object
	p.Expect(t, harness.Changes{"same": 4}, "up")
	file := p.Outputs(t)["file"].(string)
	reads(t, file, "Dear world,")
	answers(t, p, "Dear world,")

	p.Must(t, "config", "set", "to", "friend")
	changed := p.Update(t, "up")
	if changed.Changes["update"] != 2 || !slices.Contains(changed.Steps, "update card []") ||
		!slices.Contains(changed.Steps, "update copy [content]") {
		t.Errorf("another text makes %v", changed.Steps) // and the dynamic provider has the whole configuration
	}
	reads(t, file, "Dear friend,")
	answers(t, p, "Dear friend,")

	if *soaktest.Full {
		scribblesArePutRight(t, p, file)
	}

	p.Must(t, "config", "set", "directory", filepath.Join(post, "second"))
	replaced := p.Update(t, "up")
	if replaced.Changes["replace"] != 1 {
		t.Errorf("another path makes %v", replaced.Steps)
	}
	gone(t, file)
	file = p.Outputs(t)["file"].(string)
	reads(t, file, "Dear friend,")

	p.Expect(t, harness.Changes{"delete": 4}, "destroy")
	gone(t, file)
}

func goProgramLives(t *testing.T, h *harness.Home) {
	p := h.Deployctl(harness.Example(t, "go"))
	useStack(t, p)
	p.Expect(t, harness.Changes{"create": 16}, "up") // the stack, the bucket, 12 months, the index, the command
	p.Expect(t, harness.Changes{"same": 16}, "up")
	answers(t, p, ">December</a>")
	if count := p.Outputs(t)["count"]; count != "2026 has 365 days" {
		t.Errorf("the command said %q", count)
	}

	p.Must(t, "config", "set", "year", "2028")
	p.Expect(t, harness.Changes{"update": 14, "same": 2}, "up") // all but the stack and the bucket
	if count := p.Outputs(t)["count"]; count != "2028 has 366 days" {
		t.Errorf("the command said %q", count)
	}
	answers(t, p, "<title>2028</title>")

	if *soaktest.Full {
		meddlingIsPutRight(t, h, p)
	}

	harness.Edit(t, filepath.Join(p.Dir, "main.go"), `%02d.txt`, `month-%02d.txt`)
	replaced := p.Update(t, "up")
	if replaced.Changes["replace"] != 12 || replaced.Changes["update"] != 1 {
		t.Errorf("other keys make %v", replaced.Changes)
	}
	answers(t, p, "month-12.txt")

	url := p.Outputs(t)["url"].(string)
	p.Expect(t, harness.Changes{"delete": 16}, "destroy")
	if status, _ := fetch(t, url); status == http.StatusOK {
		t.Errorf("%s still answers", url)
	}
}

// scribblesArePutRight changes and removes the file of a stack behind its back.
func scribblesArePutRight(t *testing.T, p *harness.Tool, file string) {
	t.Helper()
	harness.Must(t, os.WriteFile(file, []byte("scribbled"), 0o600))
	p.Expect(t, harness.Changes{"update": 1, "same": 3}, "refresh")
	p.Expect(t, harness.Changes{"update": 1, "same": 3}, "up")
	reads(t, file, "Dear friend,")
	harness.Must(t, os.Remove(file))
	p.Expect(t, harness.Changes{"delete": 1, "same": 3}, "refresh")
	p.Expect(t, harness.Changes{"create": 1, "same": 3}, "up")
	reads(t, file, "Dear friend,")
}

// meddlingIsPutRight changes and removes a page of a stack behind its back.
func meddlingIsPutRight(t *testing.T, h *harness.Home, p *harness.Tool) {
	t.Helper()
	meddle(t, h, p, "index.html", "scribbled")
	p.Expect(t, harness.Changes{"update": 14, "same": 2}, "up", "--force")
	answers(t, p, "<title>2028</title>")
	meddle(t, h, p, "index.html", "")
	p.Expect(t, harness.Changes{"delete": 1, "same": 15}, "refresh")
	p.Expect(t, harness.Changes{"create": 1, "same": 15}, "up")
	answers(t, p, "<title>2028</title>")
}

// answers makes sure that the stack's URL answers with a text.
func answers(t *testing.T, p *harness.Tool, text string) {
	t.Helper()
	url := p.Outputs(t)["url"].(string)
	if status, page := fetch(t, url); status != http.StatusOK || !strings.Contains(page, text) {
		t.Errorf("%s answers %d without %q:\n%s", url, status, text, page)
	}
}

func fetch(t *testing.T, url string) (status int, page string) {
	t.Helper()
	res, err := http.Get(url) //nolint:gosec // the stack's own output
	harness.Must(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	harness.Must(t, err)
	return res.StatusCode, string(text)
}

func reads(t *testing.T, file, text string) {
	t.Helper()
	found, err := os.ReadFile(file) //nolint:gosec // the program's own
	harness.Must(t, err)
	if !strings.Contains(string(found), text) {
		t.Errorf("%s reads %q", file, found)
	}
}

func gone(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", file, err)
	}
}
