package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var few = metrics{"up": every, "x_total": {"job", "instance", "op", "outcome"}, "y_seconds_bucket": {"op", "le"}}

func TestWhatAnExpressionUsesMustExist(t *testing.T) {
	for expr, fault := range map[string]string{
		`sum by (op) (rate(x_total{outcome="done"}[5m])) > 0`:               "",
		`histogram_quantile(0.9, sum by (le) (rate(y_seconds_bucket[5m])))`: "",
		`up == 0 or absent(up{job="a"})`:                                    "",
		`rate(x_totals[5m])`:                                                `there is no metric "x_totals"`,
		`x_total{result="failed"}`:                                          "x_total has no label result",
		`sum by (kind) (x_total)`:                                           "nothing in it has the label kind",
		`x_total / on (kind) up`:                                            "nothing in it has the label kind",
		`x_total and (up unless y_seconds_count)`:                           `there is no metric "y_seconds_count"`,
		`{__name__=~"x.*"}`:                                                 `there is no metric ""`,
		`sum(x_total`:                                                       "parse error",
		`rate(x_total)`:                                                     "parse error",
	} {
		faults := use{where: "a panel", expr: expr}.faults(few)
		if got := strings.Join(faults, "\n"); fault == "" && got != "" || !strings.Contains(got, fault) {
			t.Errorf("%s: %q, not %q", expr, got, fault)
		}
	}
}

func TestATextNamesLabelsThatTheResultHas(t *testing.T) {
	for text, ok := range map[string]bool{
		"{{op}}": true, "{{ op }} p50": true, "of {{ $labels.op }}": true, "without": true,
		"{{ with $labels.op }}{{ . }}{{ else }}none{{ end }}": true, "{{ $value | humanize }}": true,
		"{{outcome}}": false, "{{ $labels.instance }}": false, "{{ with $labels.job }}{{ . }}{{ end }}": false,
	} {
		faults := use{expr: `sum by (op) (x_total) > 3`, templates: []string{text}}.faults(few)
		if (len(faults) == 0) != ok {
			t.Errorf("%s: %q", text, faults)
		}
	}
}

func TestAPageListsSeriesByTypes(t *testing.T) {
	var page strings.Builder
	for i := range 20 {
		page.WriteString("| `deployctl_n" + strings.Repeat("n", i) + "_total` | counter | | both | |\n")
	}
	page.WriteString("| `deployctl_step_seconds` | histogram | `op`, `kind` | worker | |\n")
	known, err := listed(page.String())
	if err != nil {
		t.Fatal(err)
	}
	if got := allowed(known["deployctl_step_seconds_bucket"]); got != "job, instance, op, kind, le" {
		t.Errorf("a bucket has %s", got)
	}
	if _, ok := known["deployctl_step_seconds"]; ok {
		t.Error("a histogram is a series")
	}
	if _, err := listed(page.String() + "| `deployctl_x` | sum | | both | |\n"); err == nil {
		t.Error("an unknown type is taken")
	}
}

func TestADashboardIsLaidOutWithoutOverlapsAndKnowsItsVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "board.json")
	text := `{"templating": {"list": [{"name": "instance", "definition": "label_values(up, instance)"}]}, "panels": [
		{"id": 1, "title": "a", "gridPos": {"h": 8, "w": 12, "x": 0, "y": 0}, "targets": [{"expr": "up{instance=~\"$instance\"}"}]},
		{"id": 1, "title": "b", "gridPos": {"h": 8, "w": 12, "x": 11, "y": 7}, "targets": [{"expr": "rate(x_total[$__rate_interval]) + $other"}]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	uses, faults, err := dashboard(file)
	if err != nil || len(uses) != 3 || len(faults) != 3 {
		t.Fatalf("%+v, %q, %v", uses, faults, err)
	}
	if uses[1].expr != `up{instance=~".*"}` || uses[0].expr != "max by (instance) (up)" {
		t.Errorf("it uses %+v", uses)
	}
}
