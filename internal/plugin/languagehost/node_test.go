//go:build unix

package languagehost_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

const waiting = `
console.log("pid of host " + process.ppid);
const child = require("child_process").spawn("sleep", ["3600"]);
console.log("pid of child " + child.pid);
console.log("pid of program " + process.pid);
setInterval(() => {}, 1000);
`

// newScript starts the language host of a program that needs nothing of the SDK: what should run it is the script. The
// real one takes seconds of a processor to load.
func newScript(t *testing.T, script string, env ...string) *program {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not on PATH")
	}
	dir := t.TempDir()
	runner := filepath.Join(dir, "node_modules", "@pulumi", "pulumi", "cmd", "run")
	must(t, os.MkdirAll(runner, 0o700), os.WriteFile(filepath.Join(runner, "index.js"), []byte(script), 0o600))
	return newProgram(t, "nodejs", dir, nil, env...)
}

func TestANodeProgramRegistersResourcesReadsItsConfigurationAndWritesOutput(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "nodejs", nodeDir(t), map[string]string{"index.js": `
const pulumi = require("@pulumi/pulumi");
console.log("to stdout");
console.error("to stderr");
pulumi.log.warn("to the engine");
const config = new pulumi.Config();
const r = new pulumi.CustomResource("tiny:index:Thing", "thing", {size: config.requireNumber("size")});
exports.id = r.id;
exports.stack = pulumi.getStack() + " of " + pulumi.getProject() + " of " + pulumi.getOrganization();
`})
	if err := p.run(t.Context()); err != nil {
		t.Fatalf("%v %v", err, p.said.messages)
	}
	wantInputs(t, p.monitor.Find("thing").Inputs, map[string]any{"size": 3.0})
	wantInputs(t, p.monitor.Stack().Outputs, map[string]any{"id": "thing-id", "stack": "dev of test of organization"})
	wantSeverity(t, p.said.await(t, "to stdout"), diag.Info)
	wantSeverity(t, p.said.await(t, "to stderr"), diag.Infoerr)
	wantSeverity(t, p.said.await(t, "to the engine"), diag.Warning)
}

// TestAProgramOfBunIsRunByTheExecutableOfThatName has node under the name of bun, whose command line is the same.
func TestAProgramOfBunIsRunByTheExecutableOfThatName(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(path, filepath.Join(dir, "bun")); err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, "bun", nodeDir(t), map[string]string{"index.js": `
const pulumi = require("@pulumi/pulumi");
exports.by = require("path").basename(process.argv0);
exports.id = new pulumi.CustomResource("tiny:index:Thing", "thing", {}).id;
`}, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := p.run(t.Context()); err != nil {
		t.Fatalf("%v %v", err, p.said.messages)
	}
	wantInputs(t, p.monitor.Stack().Outputs, map[string]any{"id": "thing-id", "by": "bun"})
}

func TestAProgramOfBunWithoutBunSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "bun", nodeDir(t), map[string]string{"index.js": ``}, "PATH="+t.TempDir())
	if err := p.run(t.Context()); err == nil || !strings.Contains(err.Error(), "bun") ||
		!strings.Contains(err.Error(), "PATH") {
		t.Error(err)
	}
}

func TestATypeScriptProgramNeedsNoBuild(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	p := newProgram(t, "nodejs", nodeDir(t), map[string]string{"index.ts": `
import * as pulumi from "@pulumi/pulumi";
const size: number = 5;
class Thing extends pulumi.CustomResource {}
export const thing = new Thing("tiny:index:Thing", "thing", {size}).id;
`})
	if err := p.run(t.Context()); err != nil {
		t.Fatalf("%v %v", err, p.said.messages)
	}
	wantInputs(t, p.monitor.Stack().Outputs, map[string]any{"thing": "thing-id"})
}

func TestANodeProgramThatThrowsHasFailedAndToldWhy(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	p := newProgram(t, "nodejs", nodeDir(t), map[string]string{"index.js": `throw new Error("no such zone");`})
	var failed *pluginhost.ProgramError
	if err := p.run(t.Context()); !errors.As(err, &failed) || !failed.Logged {
		t.Fatal(err)
	}
	wantSeverity(t, p.said.await(t, "no such zone"), diag.Error)
}

func TestANodeProgramThatExitsWith7HasFailed(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "nodejs", nodeDir(t), map[string]string{"index.js": `process.exit(7);`})
	var failed *pluginhost.ProgramError
	if err := p.run(t.Context()); !errors.As(err, &failed) || failed.Logged ||
		failed.Message != "the program exited with code 7" {
		t.Fatal(err)
	}
}

func TestAKilledNodeProgramIsLostNotFailed(t *testing.T) {
	t.Parallel()
	p := newScript(t, waiting)
	result := p.start(t.Context())
	if err := syscall.Kill(p.said.pid(t, "program"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var lost *pluginhost.LostError
	if err := <-result; !errors.As(err, &lost) || !strings.Contains(lost.Reason, "signal: killed") {
		t.Fatal(err)
	}
	awaitGone(t, p.said.pid(t, "child"))
}

func TestCancellingARunKillsTheProgramAndItsChildren(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "nodejs", nodeDir(t), map[string]string{"index.js": waiting})
	ctx, cancel := context.WithCancel(t.Context())
	result := p.start(ctx)
	pid := p.said.pid(t, "program")
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	awaitGone(t, pid)
	awaitGone(t, p.said.pid(t, "child"))
}

func TestClosingTheHostKillsTheProgram(t *testing.T) {
	t.Parallel()
	p := newScript(t, waiting)
	result := p.start(context.Background())
	pid := p.said.pid(t, "program")
	p.host.Close(t.Context())
	if syscall.Kill(pid, 0) == nil {
		t.Error("the program is still there")
	}
	var lost *pluginhost.LostError
	if err := <-result; !errors.As(err, &lost) {
		t.Fatal(err)
	}
}

func TestAsAPluginProcessTheHostRunsProgramsAndTakesThemWithIt(t *testing.T) {
	t.Parallel()
	path := "PATH=" + bin(t, "nodejs") + string(os.PathListSeparator) + os.Getenv("PATH")
	ok := newScript(t, `console.log("hello");`, path)
	if err := ok.run(t.Context()); err != nil {
		t.Fatalf("%v %v", err, ok.said.messages)
	}
	ok.said.await(t, "hello")

	p := newScript(t, waiting, path)
	result := p.start(t.Context())
	pid, host := p.said.pid(t, "program"), p.said.pid(t, "host")
	if err := syscall.Kill(host, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var lost *pluginhost.LostError
	if err := <-result; !errors.As(err, &lost) || !strings.Contains(lost.Reason, "killed") {
		t.Fatal(err)
	}
	awaitGone(t, pid)
	_ = syscall.Kill(p.said.pid(t, "child"), syscall.SIGKILL) // nobody is left to end what the program started

	p = newScript(t, waiting, path)
	result = p.start(context.Background())
	pid = p.said.pid(t, "program")
	p.host.Close(t.Context())
	if err := <-result; !errors.As(err, &lost) {
		t.Fatal(err)
	}
	awaitGone(t, pid)
}

func TestADynamicProviderOfANodeProgramRuns(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "nodejs", nodeDir(t), map[string]string{"index.js": `
const pulumi = require("@pulumi/pulumi");
const provider = {
    async check(olds, news) { return {inputs: news}; },
    async create(inputs) {
        console.log("now" + " creating");
        return {id: "made-" + inputs.size, outs: {size: inputs.size}};
    },
    async delete(id) { throw new Error("it is stuck"); },
};
class Thing extends pulumi.dynamic.Resource {
    constructor(name, args) { super(provider, name, args); }
}
new Thing("thing", {size: 4});
`})
	if err := p.run(t.Context()); err != nil {
		t.Fatalf("%v %v", err, p.said.messages)
	}
	thing := p.monitor.Find("thing")
	if thing.Type != "pulumi-nodejs:dynamic:Resource" {
		t.Fatalf("%+v", thing)
	}
	provider, err := p.host.Provider(t.Context(), pluginhost.Package{Name: "pulumi-nodejs", Version: sdkVersion},
		"default")
	if err != nil {
		t.Fatal(err)
	}
	kind := tokens.Type("pulumi:providers:pulumi-nodejs")
	if _, err := provider.Configure(t.Context(), plugin.ConfigureRequest{Type: &kind,
		Inputs: resource.PropertyMap{}}); err != nil {
		t.Fatal(err)
	}
	inputs := resource.NewPropertyMapFromMap(thing.Inputs)
	urn := resource.URN("urn:pulumi:dev::test::pulumi-nodejs:dynamic:Resource::thing")
	checked, err := provider.Check(t.Context(), plugin.CheckRequest{URN: urn, News: inputs})
	if err != nil || len(checked.Failures) > 0 {
		t.Fatalf("%+v %v", checked, err)
	}
	created, err := provider.Create(t.Context(), plugin.CreateRequest{URN: urn, Properties: checked.Properties})
	if err != nil || created.ID != "made-4" {
		t.Fatalf("%+v %v", created, err)
	}
	wantSeverity(t, p.said.await(t, "now creating"), diag.Info)
	_, err = provider.Delete(t.Context(), plugin.DeleteRequest{
		URN: urn, ID: created.ID, Inputs: checked.Properties, Outputs: created.Properties,
	})
	if v := provider.Classify(err); v.Outcome != pluginhost.Failed || !strings.Contains(v.Reason, "it is stuck") {
		t.Errorf("%+v of %v", v, err)
	}
}

func TestWithoutTheSDKANodeProgramSaysWhatToInstall(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "nodejs", t.TempDir(), map[string]string{"index.js": ``})
	if err := p.run(t.Context()); err == nil || !strings.Contains(err.Error(), "npm install @pulumi/pulumi") {
		t.Error(err)
	}
}

func TestThePackagesOfANodeProgramAreFoundAmongItsModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newProgram(t, "nodejs", dir, map[string]string{"package.json": `{"dependencies": {"@pulumi/aws": "^6"}}`})
	for path, text := range map[string]string{
		"@pulumi/aws":                         `{"name": "@pulumi/aws", "version": "6.1.0", "pulumi": {"resource": true}}`,
		"@acme/cloud":                         `{"name": "@acme/cloud", "version": "1.0.0", "pulumi": {"resource": true, "name": "acme", "version": "v2.0.0", "server": "https://acme.example"}}`,
		"left-pad":                            `{"name": "left-pad", "version": "1.0.0"}`,
		"broken":                              `{`,
		"left-pad/node_modules/@pulumi/aws":   `{"name": "@pulumi/aws", "version": "5.0.0", "pulumi": {"resource": true}}`,
		"@pulumi/policy":                      `{"name": "@pulumi/policy", "version": "1.0.0", "pulumi": {"resource": false}}`,
		".pnpm/tls@1.0.0/node_modules/tls":    `{"name": "tls", "version": "1.0.0", "pulumi": {"resource": true}}`,
		".pnpm/tls@1.0.0/node_modules/pulumi": `{"name": "pulumi"}`,
		".bun/std@2.0.0/node_modules/std":     `{"name": "std", "version": "2.0.0", "pulumi": {"resource": true}}`,
	} {
		module := filepath.Join(dir, "node_modules", filepath.FromSlash(path))
		if err := os.MkdirAll(module, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(module, "package.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages, err := p.lang.RequiredPackages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range packages {
		got = append(got, q.Name+" "+q.Version+" "+q.DownloadURL)
	}
	want := "acme 2.0.0 https://acme.example, aws 5.0.0 , aws 6.1.0 , std 2.0.0 , tls 1.0.0 "
	if strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, ", "), want)
	}
}
