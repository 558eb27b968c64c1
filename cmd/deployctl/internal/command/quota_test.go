package command

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestAQuotaIsSetAndShown(t *testing.T) {
	d := busy(t)
	shows := func(text string, args ...string) {
		t.Helper()
		if got := d.run(args...); got.code != 0 || !strings.Contains(strings.Join(strings.Fields(got.out), " "), text) {
			t.Errorf("%v does not show %q but\n%s%s", args, text, got.out, got.err)
		}
	}
	shows("The quota of acme is set", "quota", "set", "acme", "--stacks", "20", "--upload-bytes", "50MiB", "--updates",
		"3", "--versions", "7")
	shows("acme 1 of 20 0 3 - 50MiB 7", "quota", "show", "acme")
	shows("50MiB 7", "quota", "show")
	shows("is set", "quota", "set", "acme", "--stacks", "none", "--upload-bytes", "1000")
	shows("1000B 7", "quota", "show", "acme")
	shows(`"upload-bytes": 1000`, "quota", "show", "acme", "--json")
	list, err := d.service.Quotas(t.Context(), "acme")
	if err != nil || len(list) != 1 || len(list[0].Limits) != 3 || list[0].Limits[deployments.LimitUpdates] != 3 {
		t.Errorf("the quota is %+v, %v", list, err)
	}
}

func TestAQuotaIsSetOnlyToNumbers(t *testing.T) {
	for text, args := range map[string][]string{
		"--stacks takes a number or none":           {"--stacks", "many"},
		"--stacks takes a number or none, not \"-1": {"--stacks", "-1"},
		"or one with KiB, MiB or GiB, or none":      {"--upload-bytes", "5 apples"},
		"0 is no limit for \"versions\"":            {"--versions", "0"},
		"name a limit":                              nil,
	} {
		got := newDesk(t, nil).run(append([]string{"quota", "set", "acme"}, args...)...)
		if got.code != 2 || !strings.Contains(strings.Join(strings.Fields(got.err), " "), text) {
			t.Errorf("%v ends with %d and says %q, not %q", args, got.code, got.err, text)
		}
	}
}
