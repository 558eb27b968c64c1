//go:build unix

// Package interop moves stacks between deployctl and the stock CLI, both ways, and makes sure that neither has anything
// to do afterwards: same programs, same plugins, same language hosts, same passphrase.
package interop

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// secret is the configuration's.
const secret = "the-password-in-the-configuration"

func TestAStackMovesToTheStockCLIAndBackWithNothingToDo(t *testing.T) {
	soaktest.Only(t)
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	for _, p := range []struct {
		name  string
		files harness.Files
		setUp func(t *testing.T, dir string)
	}{
		{name: "YAML and a plugin", files: yamlAndFake},
		{name: "YAML and deployctl s3 with a component", files: yamlAndS3},
		{name: "a scenario with many options", files: scenario},
		{name: "Node with a dynamic provider", files: nodeDynamic, setUp: npmInstall},
		{name: "Go", files: goProgram},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			_, cloud := harness.Cloud(t)
			dir := t.TempDir()
			p.files.Write(t, dir)
			if p.setUp != nil {
				p.setUp(t, dir)
			}
			ours := h.Deployctl(dir, cloud)
			stock := newStock(t, h, ours)
			t.Run("from deployctl to the stock CLI", func(t *testing.T) { toStock(t, ours, stock, "passphrase") })
			t.Run("from the stock CLI to deployctl", func(t *testing.T) { fromStock(t, ours, stock, "passphrase") })
		})
	}
}

func TestAStackWhoseSecretsAreUnderAKeyOfVaultMovesToTheStockCLIAndBack(t *testing.T) {
	soaktest.Only(t)
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	_, cloud := harness.Cloud(t)
	dir := t.TempDir()
	yamlAndFake.Write(t, dir)
	ours := h.Deployctl(dir, append(harness.NewKeyService(t).Env(), cloud)...)
	stock := newStock(t, h, ours)
	toStock(t, ours, stock, "hashivault://stacks")
	fromStock(t, ours, stock, "hashivault://stacks")
}

// toStock makes a stack with deployctl and hands it over.
func toStock(t *testing.T, ours, stock *harness.Tool, secrets string) {
	ours.Must(t, "stack", "init", "there", "--secrets-provider", secrets)
	ours.Must(t, "config", "set", "password", secret, "--secret")
	ours.Update(t, "up")
	file := filepath.Join(t.TempDir(), "stack.json")
	ours.Must(t, "stack", "export", "--file", file)

	stock.Must(t, "stack", "init", "there", "--secrets-provider", secrets)
	stock.Must(t, "stack", "import", "--file", file)
	if end := stock.Run(t, "preview", "--expect-no-changes", "--diff", "--non-interactive"); end.Code != 0 {
		t.Errorf("the stock CLI has something to do:\n%s", end.Said())
	}
	same(t, ours, stock)
	stock.Must(t, "destroy", "--yes", "--skip-preview", "--non-interactive")
	ours.Must(t, "stack", "rm", "there", "--yes", "--force")
}

// fromStock makes a stack with the stock CLI and takes it over.
func fromStock(t *testing.T, ours, stock *harness.Tool, secrets string) {
	stock.Must(t, "stack", "init", "here", "--secrets-provider", secrets)
	stock.Must(t, "config", "set", "password", secret, "--secret")
	stock.Must(t, "up", "--yes", "--skip-preview", "--non-interactive")
	file := filepath.Join(t.TempDir(), "stack.json")
	stock.Must(t, "stack", "export", "--file", file)

	ours.Must(t, "stack", "init", "here", "--secrets-provider", secrets)
	ours.Must(t, "stack", "import", "--file", file)
	for _, kind := range []string{"preview", "up"} {
		got := ours.Update(t, kind)
		delete(got.Changes, "read") // what others manage is read every time
		if same := got.Changes["same"]; !maps.Equal(got.Changes, harness.Changes{"same": same}) || same == 0 {
			t.Errorf("%s has something to do: %v %v", kind, got.Changes, got.Steps)
		}
	}
	same(t, ours, stock)
	ours.Update(t, "destroy")
}

// extended is what a state says of extensions of packages: each by its reference, and which resources name one.
type extended struct {
	Extensions map[apitype.ExtensionRef]apitype.Extension
	Resources  []belonging
}

type belonging struct {
	URN          string
	ExtensionRef apitype.ExtensionRef
}

func extensions(t *testing.T, tool *harness.Tool) extended {
	t.Helper()
	var file struct{ Deployment extended }
	harness.Must(t, json.Unmarshal([]byte(tool.Must(t, "stack", "export")), &file))
	file.Deployment.Resources = slices.DeleteFunc(file.Deployment.Resources, func(r belonging) bool {
		return r.ExtensionRef == ""
	})
	return file.Deployment
}

// same makes sure that both show the same outputs, that these hold the secret, and that both states have the same
// extensions.
func same(t *testing.T, ours, stock *harness.Tool) {
	t.Helper()
	mine := ours.Must(t, "stack", "output", "--json", "--show-secrets")
	theirs := stock.Must(t, "stack", "output", "--json", "--show-secrets")
	if a, b := decode(t, mine), decode(t, theirs); a != b {
		t.Errorf("the outputs are\n%s\nand with the stock CLI\n%s", a, b)
	}
	if a, b := decode(t, ours.Must(t, "stack", "output", "--json")),
		decode(t, stock.Must(t, "stack", "output", "--json")); a != b {
		t.Errorf("the blinded outputs are\n%s\nand with the stock CLI\n%s", a, b)
	}
	if a, b := extensions(t, ours), extensions(t, stock); !reflect.DeepEqual(a, b) {
		t.Errorf("the extensions are\n%+v\nand with the stock CLI\n%+v", a, b)
	}
}

func npmInstall(t *testing.T, dir string) {
	t.Helper()
	path, err := exec.LookPath("npm")
	harness.Must(t, err)
	(&harness.Tool{Path: path, Dir: dir, Env: os.Environ()}).Must(t, "install", "--no-audit", "--no-fund",
		"--loglevel=error")
}
