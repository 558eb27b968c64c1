package command

import (
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

func TestMaintenanceIsSetShownAndEnded(t *testing.T) {
	d := busy(t)
	shows := func(text string, args ...string) {
		t.Helper()
		if got := d.run(args...); got.code != 0 || !strings.Contains(got.out+got.err, text) {
			t.Errorf("%v does not show %q but\n%s%s", args, text, got.out, got.err)
		}
	}
	shows("not in maintenance", "maintenance", "status")
	shows("The service is in maintenance until ", "maintenance", "on", "--reason", "Temporal is upgraded", "--for", "2h")
	for _, args := range [][]string{{"maintenance", "status"}, {"ps"}, {"ps", "--json"}, {"status"}} {
		shows("in maintenance until ", args...)
	}
	shows(`"reason": "Temporal is upgraded"`, "maintenance", "status", "--json")
	if m, err := d.service.Mode(t.Context()); err != nil || m.Kind != deployments.ModeMaintenance ||
		time.Until(m.Until) > 2*time.Hour || time.Until(m.Until) < time.Hour {
		t.Errorf("the mode is %+v, %v", m, err)
	}
	until := time.Now().Add(48 * time.Hour).Format(time.DateTime)
	shows("The service is read-only until ", "maintenance", "on", "--read-only", "--reason", "x", "--until", until)
	shows("nothing is changed", "ps")
	shows("takes everything again", "maintenance", "off")
	shows("not in maintenance", "maintenance", "status")
	if got := d.run("ps"); strings.Contains(got.err, "maintenance") {
		t.Errorf("ps still says %s", got.err)
	}
}

func TestMaintenanceNeedsAReasonAndAnEnd(t *testing.T) {
	for text, args := range map[string][]string{
		"--reason":              {"--for", "2h"},
		"--until TIME or with":  {"--reason", "x"},
		"with --for DURATION":   {"--reason", "x", "--for", "2h", "--until", "2030-01-01 00:00"},
		"--until takes a time":  {"--reason", "x", "--until", "noon"},
		"--for":                 {"--reason", "x", "--for", "soon"},
		"say a later time":      {"--reason", "x", "--until", "2020-01-01 00:00"},
		"lasts 30 days at most": {"--reason", "x", "--for", "60d"},
	} {
		got := newDesk(t, nil).run(append([]string{"maintenance", "on"}, args...)...)
		if got.code != 2 || !strings.Contains(strings.Join(strings.Fields(got.err), " "), text) {
			t.Errorf("%v ends with %d and says %q, not %q", args, got.code, got.err, text)
		}
	}
}
