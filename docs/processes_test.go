package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// started says of each function that makes a process what its standard input is. A process without one has an input
// that is at its end: the null device. Only what this program itself is on the other side, or a person's own tool, gets
// more.
var started = map[string]string{
	"cmd/deployctl/internal/app/background.go:startBackground": "none",
	"cmd/deployctl/internal/app/embedded.go:becomeEmbedded":    "the user's: it is the same command",
	"cmd/deployctl/internal/command/state/edit.go:edited":      "the user's: it is their editor",
	"internal/devserver/s3child.go:run":                        "the lifeline of the S3 server, which is this binary",
	"internal/jobs/gitsource/start.go:run":                     "the request, which this binary reads",
	"internal/sandbox/process/group_windows.go:killGroup":      "none",
	"internal/sandbox/process/guarded_unix.go:startGuard":      "the lifeline of the guard, which is this binary",
	"internal/sandbox/process/spare.go:begin":                  "a pipe: see become",
	"internal/sandbox/process/spare.go:become":                 "the pipe, closed at once unless Command.Stdin is set",
	"internal/sandbox/launch_linux.go:probe":                   "none",
	"internal/sandbox/launcher/launcher_linux.go:launchInner":  "what the launcher was given, which is the pipe",
	"internal/terminal/templates/git.go:command":               "none, or the list of objects that git reads",
	"providers/command/execute.go:execute":                     "the property stdin of the resource",
	"providers/command/group_unix.go:newGroup":                 "the lifeline of the guard's shell, which starts nothing",
}

// TestEachProcessHasAnInputOfItsOwn finds each place of the product that makes a process, so that none inherits the
// standard input of the service, or a pipe that the service keeps for itself.
func TestEachProcessHasAnInputOfItsOwn(t *testing.T) {
	found := map[string]bool{}
	for _, file := range goFiles(t) {
		top, _, _ := strings.Cut(file, "/")
		switch {
		case strings.Contains("e2e tools examples docs", top), strings.HasSuffix(top, ".go"):
			continue
		case strings.HasPrefix(file, "internal/testkit/"), strings.HasSuffix(filepath.ToSlash(filepath.Dir(file)),
			"test"): // for tests
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && makesProcess(f) {
				found[file+":"+f.Name.Name] = true
			}
		}
	}
	for place := range found {
		if started[place] == "" {
			t.Errorf("%s makes a process: say in started what its standard input is", place)
		}
	}
	for place := range started {
		if !found[place] {
			t.Errorf("%s is in started, and makes no process", place)
		}
	}
}

// makesProcess reports whether a function makes an exec.Cmd, or starts a process without one.
func makesProcess(f *ast.FuncDecl) (found bool) {
	makers := map[string]bool{"exec.Command": true, "exec.CommandContext": true, "exec.Cmd": true, "os.StartProcess": true,
		"syscall.ForkExec": true, "syscall.StartProcess": true}
	name := func(e ast.Expr) string {
		selector, ok := e.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		of, ok := selector.X.(*ast.Ident)
		if !ok {
			return ""
		}
		return of.Name + "." + selector.Sel.Name
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = found || makers[name(n.Fun)]
		case *ast.CompositeLit:
			found = found || makers[name(n.Type)]
		}
		return true
	})
	return found
}
