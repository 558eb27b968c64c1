package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// mostMethods is how many exported methods a type has at most. One with more is about several things: those that are
// about one of them go to a type of their own, as rooms of statestore.Store are fields of it.
const mostMethods = 40

// manyMethods says of a type that has more why it does.
var manyMethods = map[string]string{
	"client.Client":                        "it has a method for each call of deployments.Service, which it sends",
	"internal/service.Service":             "it has a method for each call of deployments.Service, which it answers",
	"internal/edge/grpcapi/memory.Service": "it is a deployments.Service in memory, for tests",
}

// TestATypeHasFewExportedMethods counts what the types of the module declare. What a field promotes belongs to the type
// of the field, and generated code does not count.
func TestATypeHasFewExportedMethods(t *testing.T) {
	counts := map[string]int{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, ".pb.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && d.Name.IsExported() {
					counts[path.Dir(file)+"."+receiver(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if name, n := declaredMethods(spec); n > 0 {
						counts[path.Dir(file)+"."+name] += n
					}
				}
			}
		}
	}
	if counts["statestore.Store"] == 0 || counts["deployments.Stacks"] == 0 {
		t.Errorf("the methods of a struct or of an interface are not found: %v", counts)
	}
	for name, n := range counts {
		if why := manyMethods[name]; n > mostMethods && why == "" {
			t.Errorf("%s has %d exported methods, and a type has %d at most: give those that are about one thing a type of "+
				"their own, or say here why that reads worse", name, n, mostMethods)
		} else if n <= mostMethods && why != "" {
			t.Errorf("%s has %d exported methods, and needs no reason", name, n)
		}
	}
	for name := range manyMethods {
		if counts[name] == 0 {
			t.Errorf("there is no %s", name)
		}
	}
}

// receiver returns the name of the type of a receiver.
func receiver(of ast.Expr) string {
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr: // of one type parameter
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// declaredMethods returns the name of an interface, and how many exported methods it declares itself.
func declaredMethods(spec ast.Spec) (name string, n int) {
	of, ok := spec.(*ast.TypeSpec)
	if !ok {
		return "", 0
	}
	is, ok := of.Type.(*ast.InterfaceType)
	if !ok {
		return "", 0
	}
	for _, m := range is.Methods.List {
		for _, named := range m.Names {
			if named.IsExported() {
				n++
			}
		}
	}
	return of.Name.Name, n
}
