//go:build unix

package languagehost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
)

// goProgram is a Go program with the dependencies of this module, and main.go with the body in pulumi.Run.
func goProgram(t *testing.T, body string) *program {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program")
	}
	t.Setenv("XDG_CACHE_HOME", sharedCache(t))
	files := map[string]string{"main.go": `package main

import (
	"fmt"
	"os"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

type thing struct{ pulumi.CustomResourceState }

var _ = []any{fmt.Sprint, os.Exit, time.Sleep, config.New, thing{}}

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {` + body + `})
}
`}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = strings.Replace(string(text), "module github.com/deployctl/deployctl", "module program", 1)
	}
	return newProgram(t, "go", t.TempDir(), files)
}

// sharedCache keeps Go's build cache, and gives programs a cache of their own.
func sharedCache(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("GOCACHE") == "" {
		t.Setenv("GOCACHE", filepath.Join(cache, "go-build"))
	}
	return t.TempDir()
}

func TestAGoProgramIsBuiltAndRun(t *testing.T) {
	p := goProgram(t, `
		fmt.Println("to stdout")
		size := config.New(ctx, "").RequireInt("size")
		var r thing
		if err := ctx.RegisterResource("tiny:index:Thing", "thing", pulumi.Map{"size": pulumi.Int(size)}, &r); err != nil {
			return err
		}
		ctx.Export("id", r.ID())
		ctx.Export("stack", pulumi.String(ctx.Stack()+" of "+ctx.Project()+" of "+ctx.Organization()))
		return nil`)
	if err := p.run(t.Context()); err != nil {
		t.Fatalf("%v %v", err, p.said.messages)
	}
	wantInputs(t, p.monitor.Find("thing").Inputs, map[string]any{"size": 3.0})
	wantInputs(t, p.monitor.Stack().Outputs, map[string]any{"id": "thing-id", "stack": "dev of test of organization"})
	wantSeverity(t, p.said.await(t, "to stdout"), diag.Info)
}

func TestAGoProgramThatReturnsAnErrorHasFailedAndToldWhy(t *testing.T) {
	p := goProgram(t, `return fmt.Errorf("no such zone")`)
	var failed *pluginhost.ProgramError
	if err := p.run(t.Context()); !errors.As(err, &failed) || !failed.Logged {
		t.Fatal(err)
	}
	wantSeverity(t, p.said.await(t, "no such zone"), diag.Error)
}

func TestAGoProgramThatPanicsHasFailed(t *testing.T) {
	p := goProgram(t, `panic("oh no")`)
	var failed *pluginhost.ProgramError
	if err := p.run(t.Context()); !errors.As(err, &failed) || failed.Message != "the program exited with code 2" {
		t.Fatal(err)
	}
	wantSeverity(t, p.said.await(t, "panic: oh no"), diag.Infoerr)
}

func TestAKilledGoProgramIsLostNotFailed(t *testing.T) {
	p := goProgram(t, `
		fmt.Println("pid of program", os.Getpid())
		time.Sleep(time.Hour)
		return nil`)
	result := p.start(t.Context())
	if err := syscall.Kill(p.said.pid(t, "program"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var lost *pluginhost.LostError
	if err := <-result; !errors.As(err, &lost) {
		t.Fatal(err)
	}
}

func TestAGoProgramThatDoesNotCompileHasFailed(t *testing.T) {
	p := goProgram(t, `return undefined`)
	var failed *pluginhost.ProgramError
	if err := p.run(t.Context()); !errors.As(err, &failed) || !strings.Contains(failed.Message, "does not compile") {
		t.Fatal(err)
	}
	wantSeverity(t, p.said.await(t, "undefined: undefined"), diag.Infoerr)
}

func TestThePackagesOfAGoProgramAreFoundInItsModules(t *testing.T) {
	dir := t.TempDir()
	aws := filepath.Join(dir, "aws", "go", "aws")
	if err := os.MkdirAll(aws, 0o700); err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, "go", dir, map[string]string{
		"go.mod": "module program\n\ngo 1.24\n\nrequire example.com/aws v1.2.3\n\nreplace " +
			"example.com/aws => ./aws\n",
		"main.go":                       "package main\n\nimport _ \"example.com/aws/go/aws\"\n\nfunc main() {}\n",
		"aws/go.mod":                    "module example.com/aws\n\ngo 1.24\n",
		"aws/go/aws/aws.go":             "package aws\n",
		"aws/go/aws/pulumi-plugin.json": `{"resource": true, "name": "aws", "version": "6.1.0"}`,
	})
	packages, err := p.lang.RequiredPackages(t.Context())
	if err != nil || len(packages) != 1 || packages[0].Name != "aws" || packages[0].Version != "6.1.0" {
		t.Errorf("%+v %v", packages, err)
	}
}
