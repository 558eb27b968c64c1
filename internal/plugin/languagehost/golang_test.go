//go:build unix

package languagehost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
)

// goMain does what ACT names. All tests share it, because linking a program takes most of the time.
const goMain = `package main

import (
	"fmt"
	"os"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

type thing struct{ pulumi.CustomResourceState }

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		size := config.New(ctx, "").RequireInt("size")
		switch os.Getenv("ACT") {
		case "register":
			fmt.Println("to stdout")
			var r thing
			inputs := pulumi.Map{"size": pulumi.Int(size)}
			if err := ctx.RegisterResource("tiny:index:Thing", "thing", inputs, &r); err != nil {
				return err
			}
			ctx.Export("id", r.ID())
			ctx.Export("stack", pulumi.String(ctx.Stack()+" of "+ctx.Project()+" of "+ctx.Organization()))
		case "fail":
			return fmt.Errorf("no such zone")
		case "panic":
			panic("oh no")
		case "wait":
			fmt.Println("pid of program", os.Getpid())
			time.Sleep(time.Hour)
		default:
			fmt.Println("hello from the program")
			ctx.Export("size", pulumi.Int(size))
		}
		return nil
	})
}
`

var (
	goRoot string
	goMake sync.Once
	goErr  error
)

// goDir is the directory of the program that all tests share, whose dependencies are those of examples/go.
func goDir(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program")
	}
	goMake.Do(func() {
		if goRoot, goErr = os.MkdirTemp("", "go-program"); goErr == nil {
			goErr = writeGoProgram(goRoot, goMain)
		}
	})
	must(t, goErr)
	return goRoot
}

func writeGoProgram(dir, main string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "go", name))
		if err != nil {
			return err
		}
		own := strings.Replace(string(text), "module almanac", "module program", 1)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(own), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o600)
}

func TestAGoProgramIsBuiltAndRun(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "go", goDir(t), nil, "ACT=register")
	if err := p.run(t.Context()); err != nil {
		t.Fatalf("%v %v", err, p.said.messages)
	}
	wantInputs(t, p.monitor.Find("thing").Inputs, map[string]any{"size": 3.0})
	wantInputs(t, p.monitor.Stack().Outputs, map[string]any{"id": "thing-id", "stack": "dev of test of organization"})
	wantSeverity(t, p.said.await(t, "to stdout"), diag.Info)
}

func TestAGoProgramThatReturnsAnErrorHasFailedAndToldWhy(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "go", goDir(t), nil, "ACT=fail")
	var failed *pluginhost.ProgramError
	if err := p.run(t.Context()); !errors.As(err, &failed) || !failed.Logged {
		t.Fatal(err)
	}
	wantSeverity(t, p.said.await(t, "no such zone"), diag.Error)
}

func TestAGoProgramThatPanicsHasFailed(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "go", goDir(t), nil, "ACT=panic")
	var failed *pluginhost.ProgramError
	if err := p.run(t.Context()); !errors.As(err, &failed) || failed.Message != "the program exited with code 2" {
		t.Fatal(err)
	}
	wantSeverity(t, p.said.await(t, "panic: oh no"), diag.Infoerr)
}

func TestAKilledGoProgramIsLostNotFailed(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "go", goDir(t), nil, "ACT=wait")
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
	t.Parallel()
	goDir(t) // which skips it where nothing is built
	dir := t.TempDir()
	must(t, writeGoProgram(dir, "package main\n\nfunc main() { undefined() }\n"))
	p := newProgram(t, "go", dir, nil)
	var failed *pluginhost.ProgramError
	if err := p.run(t.Context()); !errors.As(err, &failed) || !strings.Contains(failed.Message, "does not compile") {
		t.Fatal(err)
	}
	wantSeverity(t, p.said.await(t, "undefined: undefined"), diag.Infoerr)
}

func TestThePackagesOfAGoProgramAreFoundInItsModules(t *testing.T) {
	t.Parallel()
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
