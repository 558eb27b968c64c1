package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// alert is a rule of deploy/prometheus/alerts.yml.
type alert struct {
	Alert       string
	Labels      struct{ Severity string }
	Annotations struct {
		Summary string
		Runbook string `yaml:"runbook_url"`
	}
}

// alerts reads the rules.
func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alert }
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func TestEachAlertHasARunbookAndEachRunbookAnAlert(t *testing.T) {
	named := map[string]bool{}
	for _, a := range alerts(t) {
		named[a.Alert] = true
		if want := "https://github.com/" + strings.TrimPrefix(module, "github.com/") + "blob/main/docs/runbooks/" + a.Alert +
			".md"; a.Annotations.Runbook != want {
			t.Errorf("%s leads to %q, not to %s", a.Alert, a.Annotations.Runbook, want)
		}
	}
	files, err := filepath.Glob("runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if !named[name] {
			t.Errorf("%s is about an alert that there is not", file)
		}
		delete(named, name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rest := string(text)
		for _, part := range []string{"# " + name + "\n",
			"\n## What it means\n", "\n## How to see it\n", "\n## What to do\n"} {
			var ok bool
			if _, rest, ok = strings.Cut(rest, part); !ok {
				t.Errorf("%s has no %q, or not in its place", file, strings.TrimSpace(part))
			}
		}
	}
	for name := range named {
		t.Errorf("the alert %s has no runbook", name)
	}
	page, err := os.ReadFile("observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts(t) {
		row := "| [" + a.Alert + "](runbooks/" + a.Alert + ".md) | " + a.Labels.Severity + " | "
		if !strings.Contains(string(page), row) {
			t.Errorf("observability.md does not list %q", row)
		}
	}
}

// TestEachAlertIsSeenToFire is about the unit tests of the rules, which promtool plays.
func TestEachAlertIsSeenToFire(t *testing.T) {
	var file struct {
		Tests []struct {
			Alerts []struct {
				Alert string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", "alerts_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	fires := map[string]bool{}
	for _, test := range file.Tests {
		for _, a := range test.Alerts {
			fires[a.Alert] = fires[a.Alert] || len(a.Fires) > 0
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] {
			t.Errorf("no unit test sees %s fire", a.Alert)
		}
	}
}
