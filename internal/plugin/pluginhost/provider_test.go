//go:build unix

package pluginhost

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	codegenrpc "github.com/pulumi/pulumi/sdk/v3/proto/go/codegen"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func TestAProviderIsStartedInTheProgramsDirectoryWithTheGivenEnvironmentOnly(t *testing.T) {
	t.Setenv("SERVICE_SECRET", "hidden")
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "program"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := open(t, Options{
		RootDir: root, Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny"), "COLOUR=blue"},
		Project: &workspace.Project{Name: "web", Main: "program"},
	})
	resp, err := configured(t, h, "tiny", "a").Create(t.Context(), creating("env"))
	if err != nil {
		t.Fatal(err)
	}
	env := resp.Properties["env"].StringValue()
	if !strings.Contains(env, "COLOUR=blue") || !strings.Contains(env, "PULUMI_PROJECT=web") ||
		strings.Contains(env, "SERVICE_SECRET") {
		t.Errorf("environment of the plugin:\n%s", env)
	}
	if dir := resp.Properties["dir"].StringValue(); filepath.Base(dir) != "program" {
		t.Errorf("the plugin runs in %s", dir)
	}
}

func TestAProviderSeesWhatItsResourceNamesOtherwiseInTheEnvironment(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny"), "MINE=blue", "EMPTY=", "TOKEN=red",
		"COLOUR=red"}})
	seen := func(pkg Package) string {
		t.Helper()
		p, err := h.Provider(t.Context(), pkg, "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Configure(t.Context(), configuration("tiny", nil)); err != nil {
			t.Fatal(err)
		}
		resp, err := p.Create(t.Context(), creating("env"))
		if err != nil {
			t.Fatal(err)
		}
		return "\n" + resp.Properties["env"].StringValue() + "\n"
	}
	mapped := seen(Package{Name: "tiny", Env: map[string]string{"MINE": "TOKEN", "EMPTY": "COLOUR", "NOBODYS": "PATH"}})
	for _, want := range []string{"TOKEN=blue", "COLOUR=", "MINE=blue"} {
		if !strings.Contains(mapped, "\n"+want+"\n") {
			t.Errorf("there is no %s in %s", want, mapped)
		}
	}
	if plain := seen(Package{Name: "tiny"}); !strings.Contains(plain, "\nTOKEN=red\n") {
		t.Errorf("a provider without such names: %s", plain)
	}
}

func TestErrorsOfMutatingCallsAreReadAsWhatIsKnownOfTheirEffect(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	p := configured(t, h, "tiny", "a")
	for _, c := range []struct {
		do    string
		want  Outcome
		after time.Duration
	}{
		{"it", Answered, 0},
		{"refuse", Failed, 0},
		{"busy", NotDone, 7 * time.Second},
		{"later", NotDone, 3 * time.Second},
		{"gateway", Unknown, 0},
		{"half", Exists, 0},
		{"nameless", Unreadable, 0},
		{"named too long", Unreadable, 0},
		{"large", Unreadable, 0},
	} {
		_, err := p.Create(t.Context(), creating(c.do))
		if v := p.Classify(err); v.Outcome != c.want || v.RetryAfter != c.after || v.Died {
			t.Errorf("%s: %+v of %v, want %v", c.do, v, err, c.want)
		}
		if c.do == "named too long" && (err == nil || err.Error() != "the id of the resource has 6291456 bytes, and at most "+
			"65536 can be recorded") {
			t.Errorf("%s: %v", c.do, err)
		}
		if Throttled(err) != (c.do == "busy") {
			t.Errorf("%s: it is taken for a call that was turned away: %t", c.do, Throttled(err))
		}
	}
}

func TestAProviderKilledDuringACallLeavesTheOutcomeUnknownAndIsReplaced(t *testing.T) {
	said := newJournal()
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}, Log: said.log})
	p := configured(t, h, "tiny", "a")
	result := make(chan error, 1)
	go func() {
		_, err := p.Create(context.Background(), creating("hang"))
		result <- err
	}()
	said.await(t, "hanging")
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := <-result
	<-p.Died()
	if v := p.Classify(err); v.Outcome != Unknown || !v.Died || !strings.Contains(v.Reason, "signal: killed") {
		t.Errorf("%+v", v)
	}
	if m := said.await(t, "ended unexpectedly"); m.Severity != diag.Error || !strings.Contains(m.Text, "hanging") {
		t.Errorf("%+v", m)
	}

	_, err = p.Create(t.Context(), creating("it"))
	if v := p.Classify(err); v.Outcome != NotDone {
		t.Errorf("a call to the dead provider: %+v of %v", v, err)
	}
	_, err = p.Check(t.Context(), plugin.CheckRequest{URN: creating("it").URN, News: resource.PropertyMap{}})
	if e, ok := rpcerror.FromError(err); !ok || e.Code() != codes.Unavailable {
		t.Errorf("a check by the dead provider: %v", err)
	}
	if q := configured(t, h, "tiny", "a"); q.Pid() == p.Pid() {
		t.Error("the dead provider was returned again")
	}
}

// list lists resources, and returns the error that ends the list.
func list(t *testing.T, p *Provider) error {
	t.Helper()
	stream, err := p.List(t.Context(), plugin.ListRequest{Token: "tiny:index:Thing"})
	if err != nil {
		return err
	}
	for _, err := range stream.Items {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAProviderThatIsLostWhileItListsIsUnavailable(t *testing.T) {
	said := newJournal()
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}, Log: said.log})
	p := configured(t, h, "tiny", "a")
	result := make(chan error, 1)
	go func() { result <- list(t, p) }()
	said.await(t, "hanging")
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	during := <-result
	said.await(t, "ended unexpectedly") // its connection is being closed now
	for i, err := range []error{during, list(t, p), list(t, p)} {
		if e, ok := rpcerror.FromError(err); !ok || e.Code() != codes.Unavailable {
			t.Errorf("list %d: %v", i, err)
		}
	}
}

func TestAProviderThatExitsDuringACallLeavesTheOutcomeUnknown(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	p := configured(t, h, "tiny", "a")
	_, err := p.Create(t.Context(), creating("die"))
	<-p.Died()
	if v := p.Classify(err); v.Outcome != Unknown || !strings.Contains(v.Reason, "exit status 9") {
		t.Errorf("%+v", v)
	}
}

func TestCancelReachesACallInFlight(t *testing.T) {
	said := newJournal()
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}, Log: said.log})
	p := configured(t, h, "tiny", "a")
	result := make(chan error, 1)
	go func() {
		_, err := p.Create(context.Background(), creating("hang"))
		result <- err
	}()
	said.await(t, "hanging")
	if err := h.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := p.Classify(<-result); v.Outcome != Unknown || v.Died {
		t.Errorf("%+v", v)
	}
	if e, ok := rpcerror.FromError(list(t, p)); !ok || e.Code() != codes.Canceled {
		t.Errorf("a list after it: %v", e)
	}
	q := configured(t, h, "tiny", "a")
	if _, err := q.Create(t.Context(), creating("fine")); q == p || err != nil {
		t.Errorf("the next call is of the provider that was cancelled: %v", err)
	}
}

func TestEachInstanceHasItsOwnProcessAndTheFirstTakesOverTheOneThatServedTheSchema(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	if schema, err := h.schema(t.Context(), Package{Name: "tiny"}); err != nil ||
		!strings.Contains(string(schema), "tiny:index:Thing") {
		t.Fatalf("%s %v", schema, err)
	}
	spare, err := h.anyProvider(t.Context(), Package{Name: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	a, b := configured(t, h, "tiny", "a"), configured(t, h, "tiny", "b")
	if a != spare || b == a || configured(t, h, "tiny", "a") != a {
		t.Errorf("schema %d, a %d, b %d", spare.Pid(), a.Pid(), b.Pid())
	}
}

func TestAFailedConfigureIsReportedAndTheNextCallGetsAFreshProvider(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	p, err := h.Provider(t.Context(), Package{Name: "tiny"}, "a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Configure(t.Context(), configuration("tiny", map[string]any{"region": "nowhere"}))
	if err == nil || !strings.Contains(err.Error(), "no region nowhere") {
		t.Fatal(err)
	}
	if q := configured(t, h, "tiny", "a"); q == p {
		t.Error("the provider that could not be configured was returned again")
	}
}

func TestAProviderThatKnowsNoHandshakeNegotiatesInConfigure(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-old")}})
	if _, err := configured(t, h, "old", "").Create(t.Context(), creating("it")); err != nil {
		t.Fatal(err)
	}
}

func TestABuiltInProviderLearnsWhereTheProgramIsAndWhatItMayAnswer(t *testing.T) {
	root, served := t.TempDir(), &tiny{shakes: true}
	if err := os.Mkdir(filepath.Join(root, "program"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := open(t, Options{
		RootDir: root, Project: &workspace.Project{Name: "web", Main: "program"},
		Builtin: map[string]func() pulumirpc.ResourceProviderServer{
			"pulumi": func() pulumirpc.ResourceProviderServer { return served }},
	})
	configured(t, h, "pulumi", "a")
	if dir := served.shaken.GetProgramDirectory(); dir != filepath.Join(root, "program") {
		t.Errorf("the program's directory is %s", dir)
	}
	if !served.shaken.GetSupportsRefreshBeforeUpdate() {
		t.Error("it must not ask for refreshes before updates")
	}
}

func TestAnIncludedProviderIsThisBinaryInAProcessOfItsOwnWithTheEnvironmentOfTheUpdateAndItsOwn(t *testing.T) {
	t.Setenv("SERVICE_SECRET", "hidden")
	elsewhere := bin(t, "pulumi-resource-broken")
	if err := os.Rename(filepath.Join(elsewhere, "pulumi-resource-broken"),
		filepath.Join(elsewhere, "pulumi-resource-tiny")); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	h := open(t, Options{
		RootDir: root, Env: []string{"TOKEN=mine", "TOKEN=later", "PATH=" + elsewhere},
		Included: map[string][]string{"tiny": {"OWN=more", "PATH=/nowhere"}},
	})
	p, err := h.Provider(t.Context(), Package{Name: "tiny", Env: map[string]string{"TOKEN": "RENAMED"}}, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Configure(t.Context(), configuration("tiny", nil)); err != nil {
		t.Fatal(err)
	}
	if p.Pid() == 0 || p.Pid() == os.Getpid() || p.Program() == "" {
		t.Errorf("it is process %d, program %q", p.Pid(), p.Program())
	}
	made, err := p.Create(t.Context(), creating("env"))
	if err != nil {
		t.Fatal(err)
	}
	env := "\n" + made.Properties["env"].StringValue() + "\n"
	for _, want := range []string{"TOKEN=later", "RENAMED=later", "OWN=more", "PATH=/nowhere"} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("%s is not in its environment:\n%s", want, env)
		}
	}
	if strings.Contains(env, "SERVICE_SECRET") {
		t.Errorf("it has the environment of this process:\n%s", env)
	}
	real, err := filepath.EvalSymlinks(root)
	if dir := made.Properties["dir"].StringValue(); err != nil || dir != root && dir != real {
		t.Errorf("it runs in %s", dir)
	}
}

func TestABuiltInProviderNeedsNoProcess(t *testing.T) {
	h := open(t, Options{Builtin: map[string]func() pulumirpc.ResourceProviderServer{
		"pulumi": func() pulumirpc.ResourceProviderServer { return &tiny{shakes: true} },
	}})
	if schema, err := h.schema(t.Context(), Package{Name: "pulumi"}); err != nil || len(schema) == 0 {
		t.Errorf("schema %s %v", schema, err)
	}
	p := configured(t, h, "pulumi", "a")
	if resp, err := p.Create(t.Context(), creating("it")); err != nil || resp.ID != "made" || p.Pid() != 0 ||
		!p.Alive() {
		t.Errorf("%+v %v", resp, err)
	}
	h.Close(t.Context())
	if p.Alive() {
		t.Error("alive after Close")
	}
	if _, err := h.Provider(t.Context(), Package{Name: "pulumi"}, "a"); err == nil {
		t.Error("a closed host started a provider")
	}
}

func TestCloseEndsEveryProcess(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	a, b := configured(t, h, "tiny", "a"), configured(t, h, "tiny", "b")
	h.Close(t.Context())
	for _, p := range []*Provider{a, b} {
		if err := syscall.Kill(p.Pid(), 0); err == nil {
			t.Errorf("process %d is still there", p.Pid())
		}
	}
}

func TestPluginsThatCannotStartAreExplained(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-broken", "pulumi-resource-chatty")}})
	for name, want := range map[string]string{
		"broken": "exit status 3); it wrote:\n    no licence found",
		"chatty": "must be the port that it listens on, and is \"hello, I am not a port\"",
	} {
		if _, err := h.Provider(t.Context(), Package{Name: name}, ""); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPluginThatIsKilledBeforeItListensIsLostNotBroken(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-doomed", "pulumi-language-doomed")}})
	var lost *LostError
	if _, err := h.Provider(t.Context(), Package{Name: "doomed"}, ""); !errors.As(err, &lost) {
		t.Errorf("the provider: %v", err)
	}
	if _, err := h.Language(t.Context(), "doomed"); !errors.As(err, &lost) {
		t.Errorf("the language host: %v", err)
	}
}

func TestAMissingPluginAndAWrongVersionSayWhatToDo(t *testing.T) {
	home := t.TempDir()
	install(t, home, "1.0.0")
	h := open(t, Options{PulumiHome: home, Env: []string{"PATH=" + t.TempDir()}})
	_, err := h.Provider(t.Context(), Package{Name: "acme", DownloadURL: "https://acme.example"}, "")
	if err == nil || !strings.Contains(err.Error(), "run `deployctl plugin install resource acme --server "+
		"https://acme.example`") {
		t.Errorf("%v", err)
	}
	_, err = h.Provider(t.Context(), Package{Name: "aws", Version: "6.1.2"}, "")
	want := "provider plugin pulumi-resource-aws v6.1.2 is not installed: it was not found on PATH or in " +
		filepath.Join(home, "plugins") +
		", and downloads are switched off (the setting plugins.download of the service); to install it there, run " +
		"`deployctl plugin install resource aws 6.1.2` or unpack its release as resource-aws-v6.1.2"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	_, err = h.Provider(t.Context(), Package{Name: "tiny", Version: "2.0.0"}, "")
	if err == nil || !strings.Contains(err.Error(), "(found there: v1.0.0), and") {
		t.Errorf("%v", err)
	}
	if _, err = h.Language(t.Context(), "cobol"); err == nil || !strings.Contains(err.Error(),
		"language host pulumi-language-cobol is not installed: it was not found") {
		t.Errorf("%v", err)
	}
}

func TestAPluginThatIsMissingIsFetched(t *testing.T) {
	var asked []plugins.Request
	h := open(t, Options{PulumiHome: t.TempDir(), Env: []string{"PATH=" + t.TempDir()},
		Fetch: func(_ context.Context, r plugins.Request) (string, error) {
			asked = append(asked, r)
			if r.Name != "tiny" {
				return "", errors.New("nobody has it")
			}
			return bin(t, "pulumi-resource-tiny"), nil
		}})
	sum := []byte{0xab}
	pkg := Package{Name: "tiny", Version: "v1.2", DownloadURL: "https://tiny.example",
		Checksums: map[string][]byte{"linux-amd64": sum}}
	if _, err := h.Provider(t.Context(), pkg, ""); err != nil {
		t.Error(err)
	}
	_, err := h.Language(t.Context(), "cobol")
	if err == nil || !strings.Contains(err.Error(), "pulumi-language-cobol is not installed") ||
		!strings.Contains(err.Error(), "nobody has it") {
		t.Errorf("%v", err)
	}
	if len(asked) != 2 || asked[0].URL != "https://tiny.example" || asked[0].Sums["linux-amd64"] != "ab" ||
		asked[1].Kind != "language" {
		t.Errorf("what is asked for is %+v", asked)
	}
}

func TestWhatToDoAboutAMissingPluginIsSaidOnceForItsPackage(t *testing.T) {
	h := open(t, Options{PulumiHome: t.TempDir(), Env: []string{"PATH=" + t.TempDir()}})
	server := &loaderServer{schema: h.schema}
	var said []string
	for _, name := range []string{"acme", "acme", "other", "acme"} {
		_, err := server.GetSchema(t.Context(), &codegenrpc.GetSchemaRequest{Package: name})
		said = append(said, status.Convert(err).Message())
	}
	for i, whole := range []bool{true, false, true, false} {
		if !strings.Contains(said[i], "is not installed") || strings.Contains(said[i], "deployctl plugin install") != whole {
			t.Errorf("%d: %s", i, said[i])
		}
	}
}

func TestAProgramThatNamesManyMissingPackagesHasFewRemembered(t *testing.T) {
	var server loaderServer
	for i := range 2 * mostTold {
		server.saidBefore(sha256.Sum256([]byte(strconv.Itoa(i))))
	}
	if len(server.told) != mostTold {
		t.Errorf("%d are remembered", len(server.told))
	}
}

func TestAMistypedRuntimeIsAnsweredWithTheOneThatIsMeantAndNotDownloaded(t *testing.T) {
	h := open(t, Options{PulumiHome: t.TempDir(), Env: []string{"PATH=" + t.TempDir()},
		Fetch: func(_ context.Context, r plugins.Request) (string, error) {
			return "", errors.New(r.Name + " was asked for")
		}})
	for name, meant := range map[string]string{"ymal": "yaml", "YAML": "yaml", "typescript": "nodejs", "node": "nodejs",
		"pyhton": "python", "golang": "go", "dotnet": "", "java": "", "cobol": "", "hcl": "", "deno": "", "rust": ""} {
		_, err := h.Language(t.Context(), name)
		if err == nil || strings.Contains(err.Error(), "was asked for") != (meant == "") ||
			meant != "" && !strings.Contains(err.Error(), "is not installed: did you mean `runtime: "+meant+"`?") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheVersionThatIsAskedForIsFoundElseTheNewest(t *testing.T) {
	home := t.TempDir()
	for _, v := range []string{"1.2.0", "1.10.0", "1.9.0"} {
		install(t, home, v)
	}
	f := finder{home: home, root: home}
	for asked, want := range map[string]string{"": "1.10.0", "1.9.0": "1.9.0", "v1.2.0": "1.2.0"} {
		if path, err := f.find(tinyRequest(asked)); err != nil || !strings.Contains(path, "-v"+want) {
			t.Errorf("asked for %q: %s %v", asked, path, err)
		}
	}
	dir := bin(t, "pulumi-resource-tiny")
	f.project = &workspace.Project{Plugins: &workspace.Plugins{Providers: []workspace.PluginOptions{
		{Name: "tiny", Path: dir}}}}
	if path, err := f.find(tinyRequest("1.9.0")); err != nil || filepath.Dir(path) != dir {
		t.Errorf("the project's own plugin: %s %v", path, err)
	}
}

func tinyRequest(version string) plugins.Request {
	return Package{Name: "tiny", Version: version}.request()
}

func TestThePackagesOfAProjectChooseAPlugin(t *testing.T) {
	home, dir := t.TempDir(), bin(t, "pulumi-resource-tiny")
	for _, v := range []string{"1.2.0", "1.10.0"} {
		install(t, home, v)
	}
	sum := bytes.Repeat([]byte{0xab}, 32)
	h := open(t, Options{PulumiHome: home, RootDir: filepath.Dir(dir), Env: []string{"PATH=" + t.TempDir()},
		Project: &workspace.Project{Packages: map[string]workspace.PackageSpec{
			"other": {Source: "tiny", Version: "v1.2.0", PluginDownloadURL: "https://tiny.example",
				Parameters: []string{"x"}, Checksums: map[string][]byte{"linux-amd64": sum}},
			"near": {Source: "./" + filepath.Base(dir)},
		}}})
	r := h.Request(Package{Name: "tiny"})
	path, err := h.finder.find(r)
	if err != nil || !strings.Contains(path, "-v1.2.0") || r.URL != "https://tiny.example" ||
		r.Sums["linux-amd64"] != strings.Repeat("ab", 32) {
		t.Errorf("%s, %+v: %v", path, r, err)
	}
	if r := h.Request(Package{Name: "tiny", Version: "1.10.0"}); r.URL != "" || r.Version != "1.10.0" {
		t.Errorf("another version is %+v", r)
	}
	if _, err := h.finder.find(h.Request(Package{Name: "near"})); err == nil || !strings.Contains(err.Error(),
		"pulumi-resource-near") {
		t.Errorf("%v", err)
	}
	if err := os.Symlink("pulumi-resource-tiny", filepath.Join(dir, "pulumi-resource-near")); err != nil {
		t.Fatal(err)
	}
	if path, err := h.finder.find(h.Request(Package{Name: "near"})); err != nil || filepath.Dir(path) != dir {
		t.Errorf("%s, %v", path, err)
	}
}

func TestAProviderThatIsSourceCodeIsRunByItsLanguageHost(t *testing.T) {
	root := t.TempDir()
	h := open(t, Options{RootDir: root, PulumiHome: root, Env: []string{"PATH=" + t.TempDir()},
		Project: &workspace.Project{Packages: map[string]workspace.PackageSpec{"mine": {Source: "./mine"}}},
		Install: func(_ context.Context, dir string, in workspace.ProjectRuntimeInfo, _ func(context.Context) error) error {
			return fmt.Errorf("installing for %s in %s", in.Name(), filepath.Base(dir))
		}})
	if err := os.Mkdir(filepath.Join(root, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, says := range map[string]string{
		"runtime: cobol\n": "pulumi-language-cobol is not installed", "runtime: nodejs\n": "installing for nodejs in mine",
		"description: x\n": "missing a 'runtime'", "runtime: [\n": "PulumiPlugin.yaml",
		"runtime: nodejs\nrequiredPulumiVersion: '>=4.0.0'\n": "does not satisfy the version range",
	} {
		if err := os.WriteFile(filepath.Join(root, "mine", "PulumiPlugin.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Provider(t.Context(), Package{Name: "mine"}, ""); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestThePackagesOfAPythonPluginAreInstalledIntoItsDirectory(t *testing.T) {
	for text, want := range map[string]any{
		"runtime: python\n": "venv",
		"runtime: {name: python, options: {toolchain: pip}}\n":   "venv",
		"runtime: {name: python, options: {virtualenv: mine}}\n": "mine",
		"runtime: {name: python, options: {toolchain: uv}}\n":    nil,
		"runtime: nodejs\n": nil,
	} {
		for _, at := range []struct {
			bundled bool
			file    string // beside the plugin's own
			venv    bool   // it gets one
		}{
			{true, "requirements.txt", true},
			{true, "README.md", false},
			{false, "requirements.txt", false}, // nothing is installed there
			{false, "venv/pyvenv.cfg", true},
		} {
			dir := t.TempDir()
			for _, name := range []string{"PulumiPlugin.yaml", "PulumiPolicy.yaml", at.file} {
				path := filepath.Join(dir, name)
				err := os.MkdirAll(filepath.Dir(path), 0o700)
				if err := errors.Join(err, os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			o := Options{RootDir: t.TempDir()}
			if at.bundled {
				o.Bundle = dir
			}
			want := want
			if want == "venv" && !at.venv {
				want = nil
			}
			h := open(t, o)
			plugin, err := h.pluginProject(filepath.Join(dir, "PulumiPlugin.yaml"))
			if got := plugin.Runtime.Options()["virtualenv"]; err != nil || got != want {
				t.Errorf("a plugin with %q and %s has the virtual environment %v, not %v (%v)", text, at.file, got, want, err)
			}
			pack, err := h.PolicyPackRuntime(dir)
			if got := pack.Options()["virtualenv"]; err != nil || got != want {
				t.Errorf("a policy pack with %q and %s has the virtual environment %v, not %v (%v)", text, at.file, got, want, err)
			}
		}
	}
}

// install copies the test binary into a Pulumi home as version v of the plugin tiny.
func install(t *testing.T, home, v string) {
	t.Helper()
	dir := filepath.Join(home, "plugins")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(bin(t, "pulumi-resource-tiny"), filepath.Join(dir, "resource-tiny-v"+v)); err != nil {
		t.Fatal(err)
	}
}

func TestClassifyKnowsTheCodesOfTheTransport(t *testing.T) {
	for code, want := range map[codes.Code]Outcome{
		codes.Unknown: Failed, codes.InvalidArgument: Failed, codes.PermissionDenied: Failed,
		codes.Unimplemented: Failed,
		codes.Aborted:       Unknown, codes.DeadlineExceeded: Unknown, codes.Internal: Unknown, codes.DataLoss: Unknown,
		codes.Canceled: Unknown, codes.ResourceExhausted: NotDone,
	} {
		if v := classify(convert(status.Error(code, "x"))); v.Outcome != want {
			t.Errorf("%v: %v, want %v", code, v.Outcome, want)
		}
	}
}

func TestCallersAtOnceShareOneProcess(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	pids := make(chan int)
	for range 10 {
		go func() {
			p, err := h.Provider(context.Background(), Package{Name: "tiny"}, "a")
			if err != nil {
				t.Error(err)
				pids <- 0
				return
			}
			_, err = p.Configure(context.Background(), configuration("tiny", nil))
			if err != nil {
				t.Error(err)
			}
			pids <- p.Pid()
		}()
	}
	first := <-pids
	for range 9 {
		if pid := <-pids; pid != first {
			t.Errorf("process %d and process %d", first, pid)
		}
	}
}

func TestAProviderWithUnknownConfigurationIsNotCalledInAPreview(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	p, err := h.Provider(t.Context(), Package{Name: "tiny"}, "a")
	if err != nil {
		t.Fatal(err)
	}
	unknown := configuration("tiny", nil)
	unknown.Inputs = resource.PropertyMap{"region": resource.MakeComputed(resource.NewStringProperty(""))}
	if _, err := p.Configure(t.Context(), unknown); err != nil {
		t.Fatal(err)
	}
	preview := creating("refuse")
	preview.Preview = true
	if resp, err := p.Create(t.Context(), preview); err != nil || len(resp.Properties) != 0 {
		t.Errorf("%+v %v", resp, err)
	}
}

func TestAParameterisedProviderGetsItsParameterBeforeAnythingElse(t *testing.T) {
	h := open(t, Options{Env: []string{"PATH=" + bin(t, "pulumi-resource-tiny")}})
	pkg := Package{Name: "tiny", Parameter: &Parameter{Name: "huge", Version: "3.2.1", Value: []byte("x")}}
	schema, err := h.schema(t.Context(), pkg)
	if err != nil || !strings.Contains(string(schema), `"name": "huge", "version": "3.2.1"`) {
		t.Errorf("%s %v", schema, err)
	}
	plain, err := h.schema(t.Context(), Package{Name: "tiny"})
	if err != nil || strings.Contains(string(plain), "huge") {
		t.Errorf("%s %v", plain, err)
	}
}

func TestProgramsAndPluginsReachTheEngine(t *testing.T) {
	const oneURN = "urn:pulumi:dev::test::tiny:index:Thing::x"
	said := newJournal()
	h := open(t, Options{Log: said.log})
	conn, err := grpc.NewClient(h.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	engine := pulumirpc.NewEngineClient(conn)
	_, err = engine.Log(t.Context(), &pulumirpc.LogRequest{
		Severity: pulumirpc.LogSeverity_WARNING, Message: "half full", Urn: oneURN, StreamId: 3, Ephemeral: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Message{Severity: diag.Warning, Text: "half full", URN: oneURN, Stream: 3, Ephemeral: true}
	if got := said.await(t, "half full"); got != want {
		t.Errorf("%+v", got)
	}
	if _, err := engine.SetRootResource(t.Context(), &pulumirpc.SetRootResourceRequest{Urn: oneURN}); err != nil {
		t.Fatal(err)
	}
	if root, err := engine.GetRootResource(t.Context(), nil); err != nil || root.GetUrn() != oneURN ||
		h.RootResource() != oneURN {
		t.Errorf("%v %v", root, err)
	}
	for asked, want := range map[string]codes.Code{">=3.0.0": codes.OK, ">=4.0.0": codes.FailedPrecondition} {
		_, err := engine.RequirePulumiVersion(t.Context(), &pulumirpc.RequirePulumiVersionRequest{
			PulumiVersionRange: asked})
		if status.Code(err) != want {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

func TestAProjectMayRequireVersionsOfPulumi(t *testing.T) {
	for versions, says := range map[string]string{">=3.0.0": "", ">=4.0.0": `does not satisfy the version range ">=4.0.0"`,
		"three": "requiredPulumiVersion in Pulumi.yaml"} {
		h, err := New(Options{RootDir: t.TempDir(), Project: &workspace.Project{RequiredPulumiVersion: versions}})
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", versions, err)
		}
		if err == nil {
			h.Close(t.Context())
		}
	}
}

func TestMainMustBeBelowTheProject(t *testing.T) {
	for main, want := range map[string]string{"../elsewhere": "must be a path below the project",
		"gone": "no such file"} {
		_, err := New(Options{RootDir: t.TempDir(), Project: &workspace.Project{Main: main}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", main, err)
		}
	}
}
