package render

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "../../../deploy/compose/compose.yaml"

// composed loads a text as docker compose does, by the schema of the specification.
func composed(t *testing.T, text string, environment map[string]string) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: t.TempDir(), Environment: environment,
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}}})
}

// TestTheComposeFileStartsTheServiceAndAWorker compares what the worker may do with its unit of systemd.
func TestTheComposeFileStartsTheServiceAndAWorker(t *testing.T) {
	text, err := os.ReadFile(composeFile)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{"DEPLOYCTL_IMAGE": "registry.internal/deployctl", "DEPLOYCTL_VERSION": "1.2.3",
		"DEPLOYCTL_WORKER_IMAGE": "registry.internal/deployctl-worker"}
	for name := range given {
		less := map[string]string{}
		for other, value := range given {
			if other != name {
				less[other] = value
			}
		}
		if _, err := composed(t, string(text), less); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if _, err := composed(t, strings.Replace(string(text), "read_only", "readonly", 1), given); err == nil {
		t.Error("a property that there is not is taken")
	}
	project, err := composed(t, string(text), given)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"serve", "worker"} {
		s := project.Services[name]
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") ||
			!slices.Equal(s.Command, []string{name}) || s.Privileged || !strings.HasSuffix(s.Image, ":1.2.3") {
			t.Errorf("%s: %+v", name, s)
		}
	}
	unit, err := os.ReadFile("../../../deploy/debian/deployctl-worker.service")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^AmbientCapabilities=(.*)$`).FindSubmatch(unit)
	if line == nil {
		t.Fatal("the unit has no capabilities")
	}
	var wanted []string
	for name := range strings.FieldsSeq(string(line[1])) {
		wanted = append(wanted, strings.TrimPrefix(name, "CAP_"))
	}
	if worker := project.Services["worker"]; !slices.Equal(worker.CapAdd, wanted) || worker.User != "0:0" {
		t.Errorf("the worker has %v as %s, and its unit %v", worker.CapAdd, worker.User, wanted)
	}
	if serve := project.Services["serve"]; len(serve.CapAdd) > 0 || serve.User != "65532:65532" {
		t.Errorf("serve has %v as %s", serve.CapAdd, serve.User)
	}
}
