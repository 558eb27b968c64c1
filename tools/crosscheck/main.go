// Command crosscheck type-checks packages of this module for another system: crosscheck GOOS/GOARCH PACKAGE... It reads
// sources alone and skips the function bodies of other modules, so it takes seconds where a build takes minutes.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: crosscheck GOOS/GOARCH PACKAGE...")
		os.Exit(2)
	}
	if err := check(".", os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintf(os.Stderr, "crosscheck: this does not compile for %s:\n%v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// check returns the errors that packages of the module in dir, and what they import, have on a system.
func check(dir, system string, patterns ...string) error {
	goos, goarch, ok := strings.Cut(system, "/")
	sizes := types.SizesFor("gc", goarch)
	if !ok || sizes == nil {
		return fmt.Errorf("a system is GOOS/GOARCH, such as windows/amd64, not %q", system)
	}
	// Without cgo, GoFiles are all that is compiled.
	roots, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
		Dir:  dir,
		Env:  append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
	}, patterns...)
	if err != nil {
		return err
	}
	c := checker{fset: token.NewFileSet(), sizes: sizes, checked: map[string]*types.Package{"unsafe": types.Unsafe}}
	for _, p := range roots {
		c.check(p)
	}
	return errors.Join(c.errs...)
}

// checker checks packages for one system, each once.
type checker struct {
	fset    *token.FileSet
	sizes   types.Sizes
	checked map[string]*types.Package // by path
	errs    []error
}

// check type-checks a package after its imports.
func (c *checker) check(p *packages.Package) *types.Package {
	if checked, ok := c.checked[p.PkgPath]; ok {
		return checked
	}
	for _, err := range p.Errors {
		c.errs = append(c.errs, err)
	}
	own := p.Module != nil && p.Module.Main
	config := types.Config{
		Sizes:            c.sizes,
		IgnoreFuncBodies: !own,
		Importer:         imports{c, p},
		Error:            func(err error) { c.errs = append(c.errs, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	checked, _ := config.Check(p.PkgPath, c.fset, c.parse(p), nil)
	c.checked[p.PkgPath] = checked
	return checked
}

func (c *checker) parse(p *packages.Package) []*ast.File {
	files := make([]*ast.File, 0, len(p.GoFiles))
	for _, path := range p.GoFiles {
		file, err := parser.ParseFile(c.fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		files = append(files, file)
	}
	return files
}

// imports finds what a package imports.
type imports struct {
	*checker
	of *packages.Package
}

func (i imports) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p := i.of.Imports[path]
	if p == nil {
		return nil, fmt.Errorf("no package %s", path)
	}
	return i.check(p), nil
}
