package app

import (
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/statestore"
)

func TestRetentionIsAWholeNumberOfVersionsAndDays(t *testing.T) {
	for _, c := range []struct {
		versions, days string
		want           statestore.Retention
		says           string // the error; empty: the value is accepted
	}{
		{"", "", statestore.Retention{Versions: 100, Age: 30 * 24 * time.Hour}, ""},
		{"1", "1", statestore.Retention{Versions: 1, Age: 24 * time.Hour}, ""},
		{"0", "", statestore.Retention{}, `retention.versions must be a whole number from 1 to 36500, not "0" (set by DEPLOYCTL_RETENTION_VERSIONS)`},
		{"", "a week", statestore.Retention{}, `retention.days must be a whole number`},
	} {
		loaded, err := settings.Load(settings.Sources{Variable: func(name string) string {
			return map[string]string{"DEPLOYCTL_RETENTION_VERSIONS": c.versions,
				"DEPLOYCTL_RETENTION_DAYS": c.days}[name]
		}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := retentionOf(loaded)
		if c.says != "" && (deployments.CodeOf(err) != deployments.CodeInvalid ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v gives %v", c, err)
		}
		if c.says == "" && (err != nil || got != c.want) {
			t.Errorf("%+v gives %+v, %v", c, got, err)
		}
	}
}
