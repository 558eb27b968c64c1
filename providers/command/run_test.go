//go:build unix

package command_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/command"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

const urn = "urn:pulumi:dev::web::deployctl:command:Run::job"

type props = resource.PropertyMap

func str(s string) resource.PropertyValue { return resource.NewProperty(s) }

func argv(args ...string) resource.PropertyValue {
	var items []resource.PropertyValue
	for _, a := range args {
		items = append(items, str(a))
	}
	return resource.NewProperty(items)
}

// server serves commands.
func server() pulumirpc.ResourceProviderServer {
	return provider.Server(provider.Package{Name: "deployctl", Version: "0.0.1",
		Modules: []provider.Module{command.Module()}})
}

// TestMain makes the test binary a provider that runs a command, when it is called so.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "provider" {
		_, err := server().Create(context.Background(), &pulumirpc.CreateRequest{Urn: urn, Properties: &structpb.Struct{
			Fields: map[string]*structpb.Value{"create": structpb.NewStringValue(os.Args[1])},
		}})
		fmt.Println("the command ended:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func open(t *testing.T, dir string) pulumirpc.ResourceProviderClient {
	t.Helper()
	t.Chdir(dir)
	client, stop, err := provider.Client(server())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return client
}

func wire(t *testing.T, m props) *structpb.Struct {
	t.Helper()
	s, err := plugin.MarshalProperties(m, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unwire(t *testing.T, s *structpb.Struct) props {
	t.Helper()
	m, err := plugin.UnmarshalProperties(s, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func create(t *testing.T, c pulumirpc.ResourceProviderClient, in props) (string, props) {
	t.Helper()
	resp, err := c.Create(t.Context(), &pulumirpc.CreateRequest{Urn: urn, Properties: wire(t, in)})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetId(), unwire(t, resp.GetProperties())
}

func TestACommandRunsInTheProgramsDirectoryWithTheEnvironmentOfTheProviderAndItsOwn(t *testing.T) {
	t.Setenv("GIVEN", "yes")
	dir := t.TempDir()
	c := open(t, dir)
	_, out := create(t, c, props{
		"create": str(`cat; echo "$GIVEN $MORE"; pwd; echo oops >&2`), "stdin": str("in\n"),
		"environment": resource.NewProperty(props{"MORE": str("more")})})
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := out["stdout"].StringValue(); got != "in\nyes more\n"+dir && got != "in\nyes more\n"+real {
		t.Errorf("stdout %q", got)
	}
	if out["stderr"].StringValue() != "oops" || out["exitCode"].NumberValue() != 0 {
		t.Errorf("outputs %v", out)
	}
	if _, out := create(t, c, props{"create": argv("printf", "%s|", "a b",
		"$HOME")}); out["stdout"].StringValue() != "a b|$HOME|" {
		t.Errorf("arguments came as %v", out["stdout"])
	}
}

func TestAProgramIsFoundOnThePathThatItIsGiven(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "greet"), []byte("#!/bin/sh\necho hello from $0"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := open(t, dir)
	given := props{"create": argv("greet"), "environment": resource.NewProperty(
		props{"PATH": str(bin + ":" + os.Getenv("PATH"))})}
	if _, out := create(t, c, given); out["stdout"].StringValue() != "hello from "+filepath.Join(bin, "greet") {
		t.Errorf("it said %v", out["stdout"])
	}
	_, err := c.Create(t.Context(), &pulumirpc.CreateRequest{Urn: urn,
		Properties: wire(t, props{"create": argv("greet")})})
	if err == nil || !strings.Contains(err.Error(), "could not be run") {
		t.Errorf("elsewhere: %v", err)
	}
}

func TestASecretInACommandIsNotAmongTheArgumentsOfTheShell(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("only Linux shows arguments there")
	}
	c := open(t, t.TempDir())
	line := `password="needle-$((40+2))"; tr '\0' ' ' </proc/$$/cmdline; echo; env | grep -c needle; false || echo "$password"; : 'needle-43'`
	_, out := create(t, c, props{"create": resource.MakeSecret(str(line))})
	said := strings.Split(strings.TrimSpace(out["stdout"].SecretValue().Element.StringValue()), "\n")
	if len(said) != 3 || strings.Contains(said[0], "needle") || said[1] != "0" || said[2] != "needle-42" {
		t.Errorf("the command says %q", said)
	}
}

func TestAFailedCommandShowsItsLastWordsWithoutSecrets(t *testing.T) {
	c := open(t, t.TempDir())
	script := `for i in $(seq 30); do echo "line $i $S" >&2; done; exit 3`
	secret := func(s string) resource.PropertyValue { return resource.MakeSecret(str(s)) }
	for name, in := range map[string]props{
		"a plain variable":  {"create": str(script), "environment": resource.NewProperty(props{"S": str("hunter22")})},
		"a secret variable": {"create": str(script), "environment": resource.NewProperty(props{"S": secret("hunter22")})},
		"an address with a password": {"create": str(script), "environment": resource.NewProperty(props{
			"URL": secret("postgres://shop:hunter22@db"), "S": str("hunter22")})},
		"a secret command": {"create": secret("S='hunter22'; " + script)},
		"a secret input":   {"create": str("read S; " + script), "stdin": secret("hunter22\n")},
	} {
		_, err := c.Create(t.Context(), &pulumirpc.CreateRequest{Urn: urn, Properties: wire(t, in)})
		if err == nil || !strings.Contains(err.Error(), "code 3") || strings.Contains(err.Error(), " 20 ") ||
			!strings.Contains(err.Error(), " 30 ") {
			t.Errorf("%s: %v", name, err)
		}
		if shown := strings.Contains(fmt.Sprint(err), "hunter22"); shown != (name == "a plain variable") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, out := create(t, c, props{"create": str("echo $S"), "environment": resource.NewProperty(
		props{"S": resource.MakeSecret(str("pw"))})})
	if !out["stdout"].IsSecret() || !out["stderr"].IsSecret() {
		t.Errorf("outputs %v", out)
	}
}

func TestUpdateRunsOnlyWhenWhatItRunsHasChangedAndDeleteRunsItsOwn(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	in := props{"create": str("echo created | tee -a log"), "update": str(
		`echo "updated after $DEPLOYCTL_STDOUT" >> log`), "delete": str("echo deleted >> log")}
	id, out := create(t, c, in)
	update := func(olds, news props) {
		t.Helper()
		_, err := c.Update(t.Context(), &pulumirpc.UpdateRequest{Urn: urn, Id: id, OldInputs: wire(t, olds),
			Olds: wire(t, out), News: wire(t, news)})
		if err != nil {
			t.Fatal(err)
		}
	}
	later := in.Copy()
	later["delete"] = str("echo removed >> log")
	update(in, later)
	more := later.Copy()
	more["stdin"] = str("x")
	update(later, more)
	if _, err := c.Delete(t.Context(), &pulumirpc.DeleteRequest{Urn: urn, Id: id, OldInputs: wire(t, more),
		Properties: wire(t, out)}); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil || string(log) != "created\nupdated after created\nremoved\n" {
		t.Errorf("log %q, %v", log, err)
	}
	diff, err := c.Diff(t.Context(), &pulumirpc.DiffRequest{Urn: urn, Id: id, OldInputs: wire(t, in),
		News: wire(t, props{"create": in["create"], "update": in["update"], "delete": in["delete"],
			"triggers": argv("1")})})
	if err != nil || len(diff.GetReplaces()) != 1 {
		t.Errorf("a trigger: %v, %v", diff, err)
	}
}

func TestALostRunIsSettledByItsReadCommandOrByNobody(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	rules, err := c.GetMapping(t.Context(), &pulumirpc.GetMappingRequest{Key: provider.SettleMapping})
	if err != nil || string(rules.GetData()) != `{"deployctl:command:Run":"read"}` {
		t.Errorf("rules %s, %v", rules.GetData(), err)
	}
	ask := func(in props) string {
		t.Helper()
		var trailer metadata.MD
		if _, err := c.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urn, Inputs: wire(t, in)},
			grpc.Trailer(&trailer)); err != nil {
			t.Fatal(err)
		}
		return strings.Join(trailer.Get(provider.OwnershipTrailer), ",")
	}
	readable := props{"create": str("touch it"), "read": str("test -e it")}
	if got := ask(readable); got != "absent" {
		t.Errorf("before: %s", got)
	}
	create(t, c, readable)
	if got := ask(readable); got != "owned" {
		t.Errorf("after: %s", got)
	}
	for _, unable := range []string{"no-such-command", "kill -9 $$", "exit 126"} {
		if got := ask(props{"create": str("touch it"), "read": str(unable)}); got != "undecidable" {
			t.Errorf("with %s: %s", unable, got)
		}
	}
	if got := ask(props{"create": str("touch it")}); got != "undecidable" {
		t.Errorf("without a read command: %s", got)
	}
}

func TestCancelEndsTheWholeProcessGroup(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	if err := syscall.Mkfifo(filepath.Join(dir, "ready"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.Create(context.Background(), &pulumirpc.CreateRequest{Urn: urn,
			Properties: wire(t, props{"create": str("trap '' TERM; sleep 600 & echo $! > ready; wait; sleep 600")})})
		done <- err
	}()
	line, err := os.ReadFile(filepath.Join(dir, "ready")) // waits for the writer
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(line), &pid); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cancel(t.Context(), &emptypb.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("ended with %v", err)
	}
	waittest.Until(t, "what the command started has ended", func() bool { return !alive(pid) })
}

func TestWhateverACommandStartedEndsWithAProviderThatIsKilled(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "alive") // has a writer for as long as any process of the command's runs
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killed := &exec.Cmd{Path: self, Stdout: os.Stdout, Args: []string{"provider", "exec >" + pipe +
		"; trap '' TERM; sleep 600 & echo begun; wait"}}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	alive, err := os.Open(pipe) // waits for the command
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = alive.Close() }()
	said := bufio.NewReader(alive)
	if line, err := said.ReadString('\n'); line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, said); close(ended) }()
	waittest.For(t, "what the command started ends", ended)
}

func TestWhatACommandLeavesRunningOnPurposeGoesOn(t *testing.T) {
	dir := t.TempDir()
	pipe := func(name string) *os.File {
		path := filepath.Join(dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for another end
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	ask, answer := pipe("ask"), pipe("answer")
	create(t, open(t, dir), props{"create": str("cat <ask >answer 2>&1 &")})
	if _, err := ask.WriteString("still there\n"); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(answer).ReadString('\n')
		said <- line
	}()
	if line := waittest.For(t, "what the command left running answers", said); line != "still there\n" {
		t.Errorf("it said %q", line)
	}
}

// alive says whether the process runs; one that nobody has waited for yet does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func TestACommandThatSaysMuchCanBeUpdated(t *testing.T) {
	c := open(t, t.TempDir())
	in := props{"create": str(`head -c 300000 /dev/zero | tr '\0' x; printf 'a\000b'; printf end`),
		"update": str(`printf %s "$DEPLOYCTL_STDOUT" | tail -c 5`)}
	id, out := create(t, c, in)
	news := in.Copy()
	news["stdin"] = str("x")
	got, err := c.Update(t.Context(), &pulumirpc.UpdateRequest{Urn: urn, Id: id, OldInputs: wire(t, in),
		Olds: wire(t, out), News: wire(t, news)})
	if err != nil {
		t.Fatal(err)
	}
	if said := got.GetProperties().GetFields()["stdout"].GetStringValue(); said != "abend" {
		t.Errorf("the update finds %q at the end of what create said", said)
	}
}
