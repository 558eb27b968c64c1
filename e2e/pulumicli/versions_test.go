//go:build unix

package pulumicli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestTheOldestAndTheFormerStockCLIWorkAgainstDeployctl plays the commands with the CLIs that tools/peers pins beside
// the one of all other tests.
func TestTheOldestAndTheFormerStockCLIWorkAgainstDeployctl(t *testing.T) {
	soaktest.Only(t)
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	s := serviceOf(t, h)
	for _, version := range []string{"oldest", "former"} {
		t.Run(version, func(t *testing.T) {
			bin, err := harness.Peer(version)
			harness.Must(t, err)
			_, cloud := harness.Cloud(t)
			dir := t.TempDir()
			project.Write(t, dir)
			playCommands(t, s.loginWith(t, bin, h.Deployctl(dir, cloud)))
		})
	}
}

// TestWhatPulumiDoHasMadeIsKeptByAnUpAndDeletedByADestroy makes a resource of a snippet, beside those of the program.
func TestWhatPulumiDoHasMadeIsKeptByAnUpAndDeletedByADestroy(t *testing.T) {
	soaktest.Only(t)
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	_, cloud := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	ours := h.Deployctl(dir, cloud)
	p := serviceOf(t, h).login(t, ours)
	said(t, p, "Created stack", "stack", "init", "adhoc")
	said(t, p, "", "config", "set", "password", secret, "--secret")
	said(t, p, "3 created", with("up")...)
	said(t, p, "", "do", "fake:index:Auto", "create", "extra", "--size", "3", "--yes")
	said(t, ours, "resources of snippets (`pulumi do`) that stay as they are, with what they need: 1", "up", "--yes",
		"--stack", "adhoc")
	said(t, p, "4 unchanged", with("up", "--expect-no-changes")...)
	said(t, ours, "", "destroy", "--yes", "--stack", "adhoc")
	if left := ours.Deployment(t).Resources; len(left) != 0 {
		t.Errorf("%d resources are left", len(left))
	}
}

// TestTheRecordHasTheCallsOfTheStockCLI reads the client's source: each method that makes a call must be in the record
// that internal/edge/pulumiapi compares with its routes.
func TestTheRecordHasTheCallsOfTheStockCLI(t *testing.T) {
	list := exec.Command("go", "-C", filepath.Join(harness.Root(), "tools", "peers"), "list", "-m", "-f", "{{.Dir}}",
		"github.com/pulumi/pulumi/pkg/v3")
	list.Env = append(os.Environ(), "GOWORK=off")
	module, err := list.Output()
	harness.Must(t, err)
	dir := filepath.Join(strings.TrimSpace(string(module)), "backend", "httpstate", "client")
	record, err := os.ReadFile(filepath.Join(harness.Root(), "internal", "edge", "pulumiapi", "testdata", "endpoints.tsv"))
	harness.Must(t, err)
	helpers := []string{"RawCall", "WithHTTPClient", "restCall", "restCallWithOptions", "updateRESTCall"}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	harness.Must(t, err)
	calls := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		harness.Must(t, err)
		for _, d := range file.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || !makesCall(method) || slices.Contains(helpers, method.Name.Name) {
				continue
			}
			if calls++; !strings.Contains("\n"+string(record), "\n"+method.Name.Name+"\t") {
				t.Errorf("the client has the call %s, and the record has not", method.Name.Name)
			}
		}
	}
	if calls < 140 {
		t.Errorf("%d calls are found", calls)
	}
}

// makesCall reports whether a method of the client uses what sends requests.
func makesCall(method *ast.FuncDecl) (found bool) {
	if method.Recv == nil {
		return false
	}
	star, ok := method.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	if of, ok := star.X.(*ast.Ident); !ok || of.Name != "Client" {
		return false
	}
	ast.Inspect(method.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			found = found || slices.Contains([]string{"restCall", "restCallWithOptions", "updateRESTCall", "restClient",
				"HTTPClient"}, s.Sel.Name)
		}
		return true
	})
	return found
}
