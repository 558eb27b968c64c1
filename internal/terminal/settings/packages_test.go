package settings

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// explained is a line that explains settings; others that begin with # are settings to be taken.
	explained = regexp.MustCompile(`^# \S`)
	// setByChart is where the chart sets a setting: the name of the level above it, if it has one, and its own.
	setByChart = regexp.MustCompile(`set \$s(?:\.(\w+))? "([a-z0-9-]+)"`)
)

func deployed(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"../../../deploy"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheFileOfTheDebianPackageHasSettings(t *testing.T) {
	var taken strings.Builder
	for line := range strings.Lines(deployed(t, "debian", "config.yaml")) {
		if !explained.MatchString(line) {
			taken.WriteString(strings.TrimPrefix(line, "#"))
		}
	}
	s, err := load(t, taken.String(), nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, taken.String())
	}
	for key, want := range map[Key]string{TemporalNamespace: "deployctl", S3Bucket: "deployctl-state",
		MasterF: "/etc/deployctl/keys/key", SandboxRunAs: "2000000000-2000065535"} {
		if got := s.Get(key); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
}

func TestTheChartSetsSettings(t *testing.T) {
	found := setByChart.FindAllStringSubmatch(deployed(t, "helm", "deployctl", "templates", "_helpers.tpl"), -1)
	for _, m := range found {
		key := Key(strings.TrimPrefix(m[1]+"."+m[2], "."))
		if key != "sandbox" && !known(key) {
			t.Errorf("%s is no setting", key)
		}
	}
	if len(found) < 8 {
		t.Errorf("only %d are found", len(found))
	}
}
