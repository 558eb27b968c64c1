//go:build unix

// Package secrecy looks for secrets in everything that the service writes and shows: Temporal's database, the directory
// of the S3 server, logs, events, the working files and the arguments of processes. The same search with a binary that
// encrypts nothing shows that it would find them.
package secrecy

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/collectortest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// The configuration's secrets are named by where the program puts them.
var places = []string{"input", "large", "output", "provider", "command", "printed", "logged", "failure"}

// program puts every secret where it belongs. The secret of the environment is an input too. That of the profile is a
// variable of the environment: nothing says that it is secret where it is used.
const program = `
steps:
  - print: "on standard output ${config.printed}"
  - print: "on standard error ${config.printed}"
    to: stderr
  - log: "in a log ${config.logged}"
    severity: warning
  - print: "of the profile ${env.PROFILE_SECRET}"
  - log: "of the profile ${env.PROFILE_SECRET}"
  - register: elsewhere
    type: pulumi:providers:fake
    properties: {account: one, token: "${config.provider}"}
  - register: web
    type: fake:index:Auto
    properties:
      settings: {deep: [{password: "${config.input}"}], open: ["${env.PROFILE_SECRET}"]}
      secretText: !secret "${env.ENVIRONMENT_SECRET}"
    options: {provider: elsewhere}
  - register: large
    type: fake:index:Server
    properties: {settings: {text: "${config.large}"}, links: ["${web.arn}"]}
  - register: command
    type: deployctl:command:Run
    properties: {create: cat, stdin: "${config.command}", environment: {ALSO: "${config.command}"}}
  - register: profiled
    type: deployctl:command:Run
    properties:
      create: printenv PROFILE_SECRET; printenv PROFILE_SECRET >&2; test "$FAILS" != true
      environment: {FAILS: "${config.fails}"}
  - register: failure
    type: fake:index:Named
    properties: {name: "${config.failure}"}
    when: ${config.fails}
outputs:
  output: !secret "${config.output}"
  command: ${command.stdout}
  profile: ["${env.PROFILE_SECRET}", "${profiled.stdout}"]
`

func TestNothingSecretIsReadable(t *testing.T) {
	for _, provider := range []string{"default", "passphrase"} {
		t.Run("secrets provider "+provider, func(t *testing.T) {
			if provider != "default" {
				soaktest.Only(t)
			}
			h := harness.NewHome(t, harness.Binary())
			secrets, shown := live(t, h, provider)
			for name, where := range shown {
				t.Errorf("the secret %s shows in %v", name, where)
			}
			for name, where := range secrets.files(t, h.Dir, "data/keys.json", "deployctl/token") {
				t.Errorf("the secret %s can be read in %v", name, where)
			}
		})
	}
}

func TestTheSearchFindsEverySecretWhenNothingIsEncrypted(t *testing.T) {
	soaktest.Only(t) // it builds another binary
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-w", "-tags", "plaintext", "-o", dir+"/", "./cmd/deployctl",
		"./cmd/deployctl/deployctl-embedded")
	build.Dir = harness.Root()
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	h := harness.NewHome(t, filepath.Join(dir, "deployctl"))
	secrets, _ := live(t, h, "default")
	seen := secrets.files(t, filepath.Join(h.State(), "data"), "keys.json")
	for _, name := range append(slices.Clone(places), "environment") {
		in := strings.Join(seen[name], " ")
		if !strings.Contains(in, "temporal.db ") {
			t.Errorf("the secret %s is not found in Temporal's database but in %q", name, in)
		}
		if !strings.Contains(in, "s3/") && name != "printed" && name != "logged" { // these are blinded there
			t.Errorf("the secret %s is not found on S3 but in %q", name, in)
		}
	}
}

// live carries a stack through its life with the secrets of a secrets provider, stops the service, and gives the
// secrets and where output and process arguments have shown them.
func live(t *testing.T, h *harness.Home, provider string) (secrets needles, shown found) {
	t.Helper()
	temporary := filepath.Join(h.Dir, "tmp")
	harness.Must(t, os.MkdirAll(temporary, 0o700))
	secrets, shown = needles{"environment": needle(), "profile": needle()}, found{}
	cloud, env := harness.Cloud(t)
	dir := t.TempDir()
	harness.Files{"Pulumi.yaml": "name: secrecy\nruntime: scenario\n", "scenario.yaml": program}.Write(t, dir)
	collector := collectortest.Start(t)
	h.Env = append(h.Env, "TMPDIR="+temporary, "DEPLOYCTL_TRACING_ENDPOINT="+collector.URL)
	p := h.Deployctl(dir, env, "ENVIRONMENT_SECRET="+string(secrets["environment"]))
	p.Must(t, "stack", "init", "dev", "--secrets-provider", provider)
	for _, place := range places {
		secrets[place] = needle()
		set := *p
		if set.Stdin = string(secrets[place]); place == "large" {
			set.Stdin += strings.Repeat(".", 5000) + text(12000)
		}
		set.Must(t, "config", "set", place, "--secret")
	}
	set := *p
	set.Stdin = string(secrets["profile"])
	set.Must(t, "profile", "set", "keys", "--stacks", "secrecy/*", "--secret", "PROFILE_SECRET")
	p.Must(t, "config", "set", "deployctl:profile", "keys")
	harness.Must(t, cloud.Put(t.Context(), fakecloud.Object{Kind: "named", ID: string(secrets["failure"])}))
	secrets.ofService(t, h)

	stop := watchArguments(t, secrets)
	look := func(code int, command ...string) {
		t.Helper()
		end := p.Run(t, command...)
		shown.add("what `deployctl "+strings.Join(command, " ")+"` says", secrets.in([]byte(end.Stdout+end.Stderr)))
		if end.Code != code {
			t.Errorf("deployctl %s ends with %d:\n%s", strings.Join(command, " "), end.Code, end.Said())
		}
	}
	look(0, "preview")
	look(0, "up", "--yes")
	look(0, "preview", "--json")
	look(0, "up", "--yes", "--skip-preview", "--json")
	look(0, "refresh", "--yes", "--json")
	look(0, "stack", "output")
	look(0, "stack", "export")
	look(0, "config")
	look(0, "config", "set", "fails", "true")
	look(1, "up", "--yes", "--skip-preview")
	look(1, "up", "--yes", "--skip-preview", "--json")
	look(0, "stack", "history")
	look(0, "profile", "show", "keys", "--json")
	look(0, "audit", "--json")
	look(0, "logs")
	look(0, "destroy", "--yes", "--skip-preview", "--json")
	look(0, "dev", "stop")
	stop()
	exported := collector.Texts()
	for _, text := range exported {
		shown.add("exported spans", secrets.in([]byte(text)))
	}
	if all := strings.Join(exported, ""); !strings.Contains(all, `"step create"`) || !strings.Contains(all, "failed") {
		t.Errorf("no span of a step that failed was exported, but %d exports", len(exported))
	}
	return secrets, shown
}

// ofService adds the service's own secrets, and the passphrase.
func (n needles) ofService(t *testing.T, h *harness.Home) {
	t.Helper()
	n["passphrase"] = []byte(harness.Passphrase)
	n["S3 key"] = []byte(h.S3(t).SecretKey)
	text, err := os.ReadFile(filepath.Join(h.State(), "data", "keys.json"))
	harness.Must(t, err)
	var keys struct{ Master []byte }
	harness.Must(t, json.Unmarshal(text, &keys))
	n["master key"] = keys.Master
	token, err := os.ReadFile(filepath.Join(h.State(), "token"))
	harness.Must(t, err)
	n["token"] = []byte(strings.TrimSpace(string(token)))
}

// needle is a secret that nothing else looks like.
func needle() []byte { return []byte("needle-" + rand.Text()) }

// text is n bytes that do not compress well.
func text(n int) string {
	random := make([]byte, n)
	_, _ = rand.Read(random) // never fails
	return base64.StdEncoding.EncodeToString(random)[:n]
}

// watchArguments looks at the arguments of all processes again and again, until it is told to stop.
func watchArguments(t *testing.T, secrets needles) (stop func()) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	seen := map[string]bool{}
	go func() {
		defer close(ended)
		look := time.NewTicker(50 * time.Millisecond) // less than the shortest of our commands takes
		defer look.Stop()
		for {
			select {
			case <-end:
				return
			case <-look.C:
			}
			listing, err := exec.Command("ps", "-A", "-o", "args").Output()
			if err != nil {
				t.Errorf("ps: %v", err)
				return
			}
			for line := range strings.Lines(string(listing)) {
				// What the stock CLI of another test is given is its user's affair.
				if seen[line] || strings.Contains(line, "/pulumi ") {
					continue
				}
				seen[line] = true
				for name, secret := range secrets {
					if strings.Contains(line, string(secret)) {
						t.Errorf("the secret %s is an argument of %s", name, line)
					}
				}
			}
		}
	}()
	return func() { close(end); <-ended }
}
