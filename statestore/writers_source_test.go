package statestore_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parsed is a Go file of the module.
type parsed struct {
	path string
	file *ast.File
}

// parseAll parses the Go files below a directory.
func parseAll(t *testing.T, dir string, set *token.FileSet) (files []parsed) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && slices.Contains([]string{"testdata", "node_modules", ".git", "bin"},
			entry.Name()) {
			return cmpErr(err, fs.SkipDir)
		}
		if strings.HasSuffix(path, ".go") {
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			files = append(files, parsed{filepath.ToSlash(path), file})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// functions calls fn with each function of a file, and its name with that of its receiver.
func functions(file *ast.File, fn func(name string, f *ast.FuncDecl)) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			is := f.Recv.List[0].Type
			if star, ok := is.(*ast.StarExpr); ok {
				is = star.X
			}
			if generic, ok := is.(*ast.IndexExpr); ok {
				is = generic.X
			}
			name = is.(*ast.Ident).Name + "." + name
		}
		fn(name, f)
	}
}

// objectStores are the directories of what writes objects for others, and knows no meaning of theirs.
var objectStores = []string{"storetest", "bucket"}

func TestEachWriterOfTheStoreIsPlayed(t *testing.T) {
	found, tests := map[string]bool{}, map[string]bool{}
	for _, p := range parseAll(t, ".", token.NewFileSet()) {
		if slices.Contains(objectStores, path.Dir(p.path)) {
			continue
		}
		functions(p.file, func(name string, f *ast.FuncDecl) {
			if tests[name] = true; !strings.HasSuffix(p.path, "_test.go") && writesBack(f) {
				found[name] = true
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		w, known := writers[name]
		if !known {
			t.Errorf("%s writes under a condition: say in writers how ten at once end, and play it", name)
		} else if (w.play != nil) == (w.test != "" || w.told != "") || w.test != "" && !tests[w.test] {
			t.Errorf("%s needs one of a play, a test that exists, and a reason", name)
		}
	}
	for name := range writers {
		if !found[name] {
			t.Errorf("%s is in writers, and writes under no condition", name)
		}
	}
}

// writesBack reports whether a function looks at ErrChanged, or makes a condition on a tag.
func writesBack(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			found = found || n.Name == "ErrChanged"
		case *ast.CompositeLit:
			if is, ok := n.Type.(*ast.SelectorExpr); ok && is.Sel.Name == "Condition" {
				for _, field := range n.Elts {
					pair, ok := field.(*ast.KeyValueExpr)
					found = found || ok && pair.Key.(*ast.Ident).Name == "Tag"
				}
			}
		}
		return true
	})
	return found
}

// again are the functions that call a function which they are given once more after a conflict.
var again = []string{"changeHead", "changeKnownHead", "changeMember", "nextSnapshot", "ChangeWebhooks",
	"ChangeSchedule", "ChangeDeployment", "ChangeDeploymentSettings", "changeKeyring", "changePlaces"}

// TestWhatRunsAgainBeginsWithTheSame looks at each function that may be called again after a conflict: what it has
// changed of the variables around it the first time would be there the second time. One that it sets, it sets as a
// whole before it reads it.
func TestWhatRunsAgainBeginsWithTheSame(t *testing.T) {
	set, looked := token.NewFileSet(), 0
	for _, p := range parseAll(t, "..", set) {
		if strings.HasSuffix(p.path, "_test.go") {
			continue
		}
		ast.Inspect(p.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.Contains(again, calledName(call)) {
				return true
			}
			for _, arg := range call.Args {
				if f := literal(arg); f != nil {
					looked++
					for name, place := range leftBehind(f) {
						t.Errorf("%s: the function runs again after a conflict, and keeps what it did to %s", set.Position(place),
							name)
					}
				}
			}
			return true
		})
	}
	if looked < 20 {
		t.Errorf("only %d functions were found", looked)
	}
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literal returns the function that an argument is: written there, or in a variable.
func literal(arg ast.Expr) *ast.FuncLit {
	switch arg := arg.(type) {
	case *ast.FuncLit:
		return arg
	case *ast.Ident:
		if arg.Obj == nil {
			return nil
		}
		if set, ok := arg.Obj.Decl.(*ast.AssignStmt); ok && len(set.Rhs) == 1 {
			f, _ := set.Rhs[0].(*ast.FuncLit)
			return f
		}
	}
	return nil
}

// leftBehind returns the variables around a function that it changes without having set them as a whole before.
func leftBehind(f *ast.FuncLit) map[string]token.Pos {
	found := map[string]token.Pos{}
	fresh := map[*ast.Object]bool{} //nolint:staticcheck // of local variables, for which scopes suffice
	around := func(e ast.Expr) *ast.Ident {
		for {
			switch x := e.(type) {
			case *ast.Ident:
				if x.Obj == nil || x.Obj.Kind != ast.Var || x.Obj.Pos() >= f.Pos() && x.Obj.Pos() < f.End() {
					return nil
				}
				return x
			case *ast.SelectorExpr:
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			default:
				return nil
			}
		}
	}
	change := func(e ast.Expr) {
		if x := around(e); x != nil && !fresh[x.Obj] {
			found[x.Name] = e.Pos()
		}
	}
	for _, statement := range f.Body.List { // what is set at the top level, before anything else is done with it
		if set, ok := statement.(*ast.AssignStmt); ok && set.Tok == token.ASSIGN {
			for _, left := range set.Lhs {
				if x, ok := left.(*ast.Ident); ok && around(x) != nil && !usesBefore(f, x, set) {
					fresh[x.Obj] = true
				}
			}
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				change(left)
			}
		case *ast.IncDecStmt:
			change(n.X)
		}
		return true
	})
	return found
}

// usesBefore reports whether a function uses a variable before the end of the statement that sets it.
func usesBefore(f *ast.FuncLit, x *ast.Ident, set *ast.AssignStmt) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if other, ok := n.(*ast.Ident); ok && other.Obj == x.Obj && other != x && other.Pos() < set.End() {
			found = true
		}
		return true
	})
	return found
}
