//go:build unix

package pulumicli

import (
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// works is the outcome of a command that works.
const works = "works"

// play is one command of the stock CLI, played in its turn.
type play struct {
	line string // its arguments, separated by spaces; {NAME} is what an earlier play has kept
	says string // what it must say; it then must succeed
	// keep is the name of the play's result for later ones: the "name" or the "id" of what it prints as JSON.
	keep  string
	stdin string
}

// local are the commands that ask no backend of the kind that deployctl is, by the start of their names, with the
// reason.
var local = map[string]string{
	"api":   "needs a description of the API in OpenAPI, which deployctl does not have",
	"about": "no backend", "version": "no backend", "gen-completion": "no backend", "console": "opens a browser",
	"plugin": "no backend", "package add": "no backend", "package delete": "no backend", "package gen-sdk": "no backend",
	"package get-mapping": "no backend", "package get-schema": "no backend", "package info": "no backend",
	"package new": "no backend", "package remove": "no backend", "schema": "no backend", "install": "no backend",
	"convert": "no backend", "policy analyze": "no backend", "policy new": "no backend", "policy install": "no backend",
	"policy validate-config": "no backend", "logs decrypt": "no backend", "logs list": "no backend",
	"logs remove": "no backend", "logs": "no backend", "do": "no backend", "new": "as `stack new`",
	"project new": "as `stack new`",
}

// elsewhere are the commands that other tests of this package play, and those tests.
var elsewhere = map[string]string{
	"login": "all", "stack migrate": "a stack of another backend", "cancel": "a running update is cancelled",
	"stack webhook ping": "webhooks", "org webhook ping": "webhooks", "stack webhook delivery redeliver": "webhooks",
}

// groups are commands of which one, the value, is played for all: they are served or refused as one.
var groups = map[string]string{"env": "env list", "insights": "insights account list", "neo": "neo",
	"policy publish": "policy list", "package publish": "template publish"}

// remarks are what is to be said of commands that work.
var remarks = map[string]string{
	"stack tag set": "sends all tags: of several at once some are lost; `deployctl stack tag set` sends one",
}

// standing are the commands with others below them that do something themselves.
var standing = []string{"about", "api", "config", "do", "logs", "neo", "org search", "stack", "stack history"}

// commandsOf lists the commands of the stock CLI at all levels, without those that only have others below them.
func commandsOf(t *testing.T, p *harness.Tool) []string {
	t.Helper()
	dir := t.TempDir()
	p.Must(t, "gen-markdown", dir)
	files, err := filepath.Glob(filepath.Join(dir, "pulumi_*.md"))
	harness.Must(t, err)
	var names []string
	for _, file := range files {
		name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "pulumi_"), ".md"), "_", " ")
		parent := slices.ContainsFunc(files, func(f string) bool {
			return strings.HasPrefix(filepath.Base(f), strings.TrimSuffix(filepath.Base(file), ".md")+"_")
		})
		if !parent || slices.Contains(standing, name) {
			names = append(names, name)
		}
	}
	return names
}

// commandOf returns the command that a line calls: the longest one that the line begins with.
func commandOf(commands []string, line string) (found string) {
	for _, name := range commands {
		if (line == name || strings.HasPrefix(line, name+" ")) && len(name) > len(found) {
			found = name
		}
	}
	return found
}

// covered returns the entry of a table for a command: of the longest key that the command begins with.
func covered(table map[string]string, command string) (entry string, ok bool) {
	entry, ok = table[commandOf(slices.Collect(maps.Keys(table)), command)]
	return entry, ok
}

// stage is where the plays are played.
type stage struct {
	t        *testing.T
	tool     *harness.Tool
	cloud    *fakecloud.Process
	kept     map[string]string
	outcomes map[string]string // of commands
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// play plays a command, and notes what came of it. A refusal must be a sentence of the service, or of the CLI itself.
func (s *stage) play(commands []string, p play) {
	s.t.Helper()
	line := placeholder.ReplaceAllStringFunc(p.line, func(name string) string { return s.kept[strings.Trim(name, "{}")] })
	command := commandOf(commands, line)
	if command == "" {
		s.t.Errorf("there is no command for %q", line)
		return
	}
	s.tool.Stdin = p.stdin
	end := s.tool.Run(s.t, strings.Fields(line)...)
	s.tool.Stdin = ""
	if p.keep != "" {
		var made struct{ Name, ID string }
		if err := json.Unmarshal([]byte(end.Stdout), &made); err != nil || made.Name+made.ID == "" {
			s.t.Errorf("%s prints %s, not JSON with an id: %v", line, end.Said(), err)
		}
		s.kept[p.keep] = cmp.Or(made.ID, made.Name)
	}
	switch {
	case p.says != "" && (end.Code != 0 || !strings.Contains(end.Stdout+end.Stderr, p.says)):
		s.t.Errorf("%s ends with %d and does not say %q:\n%s", line, end.Code, p.says, end.Said())
	case end.Code != 0 && s.broken(end.Said()):
		s.t.Errorf("%s ends with %d:\n%s", line, end.Code, end.Said())
	}
	outcome := works
	if end.Code != 0 {
		outcome = "refused: " + reasonOf(end.Said())
	}
	if s.outcomes[command] == "" || outcome == works {
		s.outcomes[command] = outcome
	}
}

// broken reports whether a failure is one of the service or of the CLI, instead of a refusal.
func (s *stage) broken(said string) bool {
	for _, sign := range []string{"goroutine ", "panic:", "[500]", "the service failed", "connection refused", "EOF"} {
		if strings.Contains(said, sign) {
			return true
		}
	}
	return false
}

var (
	code    = regexp.MustCompile(`^\[\d+\] `)
	ids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{8}\b`)
	dropped = regexp.MustCompile(`https?://\S+|/tmp/\S+|"[^"]*"|'[^']*'`)
)

// reasonOf returns the sentence for which a command was refused, without what differs from one time to the next.
func reasonOf(said string) string {
	reason := ""
	for line := range strings.Lines(said) {
		if _, text, found := strings.Cut(line, "error: "); found {
			reason = strings.TrimSpace(text)
		}
	}
	parts := strings.Split(reason, ": ")
	for i, part := range parts { // the service's own sentence follows its status
		if code.MatchString(part) {
			reason = code.ReplaceAllString(strings.Join(parts[i:], ": "), "")
			break
		}
	}
	if reason == "" { // not every command begins its error so
		lines := strings.Split(strings.TrimSpace(said), "\n")
		reason = strings.TrimSpace(lines[len(lines)-1])
	}
	return ids.ReplaceAllString(dropped.ReplaceAllString(reason, "…"), "ID")
}

// commandTable plays each command of the stock CLI that needs a backend, and returns the rows of the table. The
// environment leads deployctl to the service.
func commandTable(t *testing.T, h *harness.Home, s service, client []string) []string {
	t.Helper()
	cloud, env := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	ours := h.Deployctl(dir, client...)
	ours.Must(t, "member", "add", "ann", "--role", "viewer", "--organization", "organization")
	ours.Must(t, "team", "add", "t", "--role", "viewer", "--organization", "organization")
	p := s.login(t, h.Deployctl(dir, env))
	commands := commandsOf(t, p)
	p.Must(t, "stack", "init", "table")
	p.Must(t, "config", "set", "fake:endpoint", cloud.URL())
	stage := &stage{t: t, tool: p, cloud: cloud, kept: map[string]string{"dir": t.TempDir()},
		outcomes: map[string]string{}}
	harness.Must(t, cloud.Put(t.Context(), fakecloud.Object{Kind: "named", ID: "extra", Name: "extra"}))
	for _, p := range plays {
		stage.play(commands, p)
	}
	return stage.rows(commands)
}

// unplayed returns the outcome of a command that is not played here.
func (s *stage) unplayed(command string) string {
	s.t.Helper()
	if _, ok := covered(elsewhere, command); ok {
		return works
	}
	why, ok := covered(local, command)
	if !ok {
		s.t.Errorf("the command %q is not played, and nothing says why", command)
	}
	return why
}

// rows returns the table: each command that was played, and those that are not, with the reason.
func (s *stage) rows(commands []string) []string {
	s.t.Helper()
	var rows []string
	grouped := map[string]bool{}
	for _, command := range commands {
		outcome, shown := s.outcomes[command], "`"+command+"`"
		for group, one := range groups {
			if command == group || strings.HasPrefix(command, group+" ") {
				outcome, shown = s.outcomes[one], "`"+group+"` …"
			}
		}
		if grouped[shown] {
			continue
		}
		grouped[shown] = true
		if outcome == "" {
			outcome = s.unplayed(command)
		}
		mark := "●"
		switch {
		case strings.HasPrefix(outcome, "refused: "):
			mark, outcome = "–", strings.TrimPrefix(outcome, "refused: ")
		case outcome == works:
			outcome = remarks[command]
		default:
			mark = ""
		}
		rows = append(rows, "| "+shown+" | "+mark+" | "+outcome+" |")
	}
	return rows
}

// TestEachCommandOfTheStockCLIWorksOrIsRefusedWithAReason plays all commands against serve and a worker, and against
// the embedded service. Both come to the table of the page; -update writes it.
func TestEachCommandOfTheStockCLIWorksOrIsRefusedWithAReason(t *testing.T) {
	soaktest.Only(t)
	page := filepath.Join(harness.Root(), "docs", "stock-cli.md")
	t.Run("serve", func(t *testing.T) {
		h := harness.NewHome(t, harness.Binary())
		home, err := cluster.Prepare(t.Context(), h.Binary, h.Dir, h.Env)
		harness.Must(t, err)
		c, err := cluster.Start(t.Context(), h.Binary, h.Dir, h.Env, home, home.S3Endpoint, 1)
		harness.Must(t, err)
		t.Cleanup(c.Stop)
		inPage(t, page, commandTable(t, h, service{c.Pulumi, c.Token}, c.Env))
	})
	t.Run("dev", func(t *testing.T) {
		h := harness.NewHome(t, harness.Binary())
		h.Start(t)
		inPage(t, page, commandTable(t, h, serviceOf(t, h), nil))
	})
}

var rewrite = flag.Bool("update", false, "write the table of commands into docs/stock-cli.md")

// inPage compares the table between the marks of a page with the rows, or writes them there.
func inPage(t *testing.T, page string, rows []string) {
	t.Helper()
	const begin, end = "<!-- the table of commands -->\n", "<!-- end -->"
	text, err := os.ReadFile(page)
	harness.Must(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	was, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	table := "| command | | |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
	if was == table {
		return
	}
	if !*rewrite {
		t.Errorf("the table of %s is not what the commands come to: go test ./e2e/pulumicli -run EachCommand -update\n%s",
			page, table)
		return
	}
	harness.Must(t, os.WriteFile(page, []byte(before+begin+table+end+after), 0o644)) //nolint:gosec // a page
}
