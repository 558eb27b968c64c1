//go:build unix

package pluginhost

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost/hosttest"
	"github.com/deployctl/deployctl/internal/testkit/peertest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

func TestAYAMLProgramRunsOverTheRealLanguageHost(t *testing.T) {
	host := peertest.Path(t, "pulumi-language-yaml")
	root := t.TempDir()
	write(t, root, "Pulumi.yaml", `
name: test
runtime: yaml
resources:
  thing:
    type: tiny:Thing
    properties: {do: it, size: 3}
outputs:
  size: ${thing.size}
`)
	project, err := workspace.LoadProject(filepath.Join(root, "Pulumi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	said := newJournal()
	h := open(t, Options{
		RootDir: root, Project: project, Log: said.log,
		Env: []string{"HOME=" + t.TempDir(), "PATH=" + bin(t, "pulumi-resource-tiny") + string(os.PathListSeparator) +
			filepath.Dir(host)},
	})
	lang, err := h.Language(t.Context(), "yaml")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := lang.RequiredPackages(t.Context())
	if err != nil || len(packages) != 1 || packages[0].Name != "tiny" {
		t.Fatalf("required packages: %+v %v", packages, err)
	}
	monitor := hosttest.New(t)
	err = lang.Run(t.Context(), RunRequest{Organization: "organization", Project: "test", Stack: "dev", Parallel: 4,
		MonitorAddress: monitor.Address})
	if err != nil {
		t.Fatalf("%v %v", err, said.messages)
	}
	if thing := monitor.Find("thing"); thing == nil || thing.Type != "tiny:index:Thing" || thing.Inputs["size"] != 3.0 {
		t.Errorf("%+v", thing)
	}
	if stack := monitor.Stack(); stack == nil || stack.Outputs["size"] != 3.0 {
		t.Errorf("%+v", stack)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
