package providers_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers"
	"github.com/deployctl/deployctl/providers/s3/s3test"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	pluginName = "pulumi-resource-deployctl"
	parentName = "parent-of-plugin"
)

// TestMain makes this binary the plugin, or a parent of one, when it is started under that name.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case pluginName:
		if err := provider.Main(providers.Package(providers.Defaults{}), os.Args[1:]); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case parentName:
		plugin := exec.Command(os.Args[1])
		plugin.Stdout = os.Stdout
		if err := plugin.Start(); err != nil {
			panic(err)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	default:
		os.Exit(s3test.Run(m))
	}
}

// as is this binary under another name.
func as(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAPluginProcessPrintsItsPortServesAndEndsWithItsParent(t *testing.T) {
	parent := exec.Command(as(t, parentName), as(t, pluginName))
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	parent.Stdout = theirs // and the plugin's
	if err := errors.Join(parent.Start(), theirs.Close()); err != nil {
		t.Fatal(err)
	}
	stdout := bufio.NewReader(out)
	port, err := stdout.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strings.TrimSpace(port)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	info, err := pulumirpc.NewResourceProviderClient(conn).GetPluginInfo(t.Context(), &emptypb.Empty{})
	if err != nil || info.GetVersion() != providers.Version {
		t.Fatalf("%v, %v", info, err)
	}

	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, stdout); close(ended) }()
	waittest.For(t, "the plugin ends", ended)
}

// stock is the stock CLI on a copy of the example, with a home and a backend of its own.
type stock struct {
	t   *testing.T
	dir string
	env []string
}

func newStock(t *testing.T) stock {
	t.Helper()
	for _, peer := range []string{"pulumi", "pulumi-language-yaml"} {
		if _, err := exec.LookPath(peer); err != nil {
			t.Skipf("%s is not on PATH", peer)
		}
	}
	s := stock{t: t, dir: t.TempDir()}
	if err := os.CopyFS(s.dir, os.DirFS("../examples/website")); err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "PATH="+filepath.Dir(as(t, pluginName))+string(os.PathListSeparator)+os.Getenv("PATH"),
		"PULUMI_HOME="+t.TempDir(), "PULUMI_BACKEND_URL=file://"+t.TempDir(), "PULUMI_CONFIG_PASSPHRASE=x",
		"PULUMI_SKIP_UPDATE_CHECK=true",
		"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true", "AWS_REGION=us-east-1",
		"AWS_ENDPOINT_URL_S3="+s3test.Endpoint,
		"AWS_ACCESS_KEY_ID="+s3test.AccessKey, "AWS_SECRET_ACCESS_KEY="+s3test.SecretKey)
	s.run("stack", "init", "dev")
	return s
}

func (s stock) run(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "pulumi", append(args, "--non-interactive")...)
	cmd.Dir, cmd.Env = s.dir, s.env
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("pulumi %v: %v\n%s%s", args, err, out, errs.String())
	}
	return string(out)
}

// changes runs up or destroy, and returns how many resources it did what to.
func (s stock) changes(verb string) map[string]int {
	s.t.Helper()
	var result struct{ ChangeSummary map[string]int }
	out := s.run(verb, "--yes", "--skip-preview", "--json")
	for line := range strings.Lines(out) { // one event per line, the last of which sums up
		var event struct {
			SummaryEvent struct{ ResourceChanges map[string]int }
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.SummaryEvent.ResourceChanges != nil {
			result.ChangeSummary = event.SummaryEvent.ResourceChanges
		}
	}
	if result.ChangeSummary == nil && json.Unmarshal([]byte(out), &result) != nil {
		s.t.Fatalf("pulumi %s said %s", verb, out)
	}
	return result.ChangeSummary
}

func (s stock) edit(file string, change func(string) string) {
	s.t.Helper()
	path := filepath.Join(s.dir, file)
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s stock) want(verb string, want map[string]int) {
	s.t.Helper()
	if got := s.changes(verb); fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("%s did %v, want %v", verb, got, want)
	}
}

func (s stock) answers() int {
	s.t.Helper()
	resp, err := http.Get(strings.TrimSpace(s.run("stack", "output", "url")))
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestTheStockCLIDeploysChangesReplacesAndDestroysTheExample(t *testing.T) {
	s := newStock(t)
	s.want("up", map[string]int{"create": 10})
	if code := s.answers(); code != http.StatusOK {
		t.Errorf("the page answers %d", code)
	}
	s.want("up", map[string]int{"same": 10})
	s.edit("www/about.html", func(text string) string { return text + "\n" })
	s.want("up", map[string]int{"same": 9, "update": 1})
	if err := os.Remove(filepath.Join(s.dir, "www/robots.txt")); err != nil {
		t.Fatal(err)
	}
	s.want("up", map[string]int{"delete": 1, "same": 8, "update": 1})
	s.edit("Pulumi.yaml", func(text string) string {
		return strings.Replace(text, "# name: my-own-name",
			"name: my-own-name", 1)
	})
	s.want("up", map[string]int{"replace": 7, "same": 1, "update": 1})
	if code := s.answers(); code != http.StatusOK {
		t.Errorf("after the bucket was renamed the page answers %d", code)
	}
	s.want("destroy", map[string]int{"delete": 9})
}
