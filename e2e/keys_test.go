package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestCompletionOffersTheKeysThatMayBeDropped rotates the keys of a part of the bucket that nobody else uses.
func TestCompletionOffersTheKeysThatMayBeDropped(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	good, _ := h.parts(t)
	_, _, stop := apart(t, "rotated/")
	stop()
	p := h.in(t.TempDir(), slices.Concat(good, []string{"DEPLOYCTL_S3_PREFIX=rotated/"})...)
	p.must(t, "key", "rotate")
	rows := strings.Split(strings.TrimSpace(p.must(t, "key", "ls")), "\n")
	offered := p.must(t, "key", "drop", "", "--generate-bash-completion")
	for _, row := range rows[1:] {
		fields := strings.Fields(row)
		replaced := fields[len(fields)-2] != "-"
		if strings.Contains(offered, fields[0]) != replaced {
			t.Errorf("offered is %q of the keys\n%s", offered, strings.Join(rows, "\n"))
		}
	}
}
