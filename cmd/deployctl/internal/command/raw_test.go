package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/deployments"
)

func TestTheStoredObjectsOfAStackAreExportedToAFileThatIsWholeOrNotThere(t *testing.T) {
	d := inProject(t)
	const state = `{"resources":[]}`
	name := deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}
	if _, err := d.service.Import(t.Context(), deployments.ImportRequest{
		Stack: name, Deployment: apitype.UntypedDeployment{Version: 3, Deployment: []byte(state)},
	}); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "dev.tar")
	d.must("stack", "export", "--raw", file)
	text, err := os.ReadFile(file)
	if err != nil || string(text) != state {
		t.Errorf("the file has %q, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, flag := range [][]string{{"--version", "1"}, {"--show-secrets"}, {"--file", file}} {
		d.refused(2, "--raw cannot be used with "+flag[0], append([]string{"stack", "export", "--raw", file}, flag...)...)
	}
	if o := d.run("stack", "export", "--stack", "absent", "--raw", file); o.code == 0 {
		t.Errorf("a stack that is not there: %+v", o)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
