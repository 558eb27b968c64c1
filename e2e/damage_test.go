package e2e

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestAStackWhoseHeadIsLostIsShownAndNotMadeAgain(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, running(t))
	s.update(t, "up")
	head := filepath.Join(s.state(), "data", "s3", "deployctl", "stacks", "organization", projectName(t), "dev",
		"head.json")
	text, err := os.ReadFile(head)
	must(t, err)
	must(t, os.Remove(head))
	repair := []string{"stacks/organization/" + projectName(t) + "/dev/head.json is missing",
		"put back the last good copy"}
	s.fails(t, 2, repair, "up", "--yes", "--skip-preview")
	s.fails(t, 2, repair, "stack", "init", "dev")
	s.fails(t, 2, repair, "stack", "rm", "dev", "--yes")
	if r := s.run(t, "stack", "ls"); !strings.Contains(r.said(), "damaged") || !strings.Contains(r.said(), repair[0]) {
		t.Errorf("the list of stacks says\n%s", r.said())
	}
	must(t, os.WriteFile(head, text, 0o600))
	s.asIfNothingHappened(t)
}

func TestKeyCommandsNameWhatTheyActOn(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	good, s := h.parts(t)
	configured := h.in(t.TempDir(), "DEPLOYCTL_SERVER=deployctl.example.test:7460")
	for _, command := range []string{"ls", "rotate", "reseal", "adopt"} {
		configured.fails(t, 2, []string{"the service at deployctl.example.test:7460 (set by DEPLOYCTL_SERVER)",
			"settings of serve"}, "key", command)
	}
	configured.fails(t, 2, []string{"settings of serve"}, "organization", "ls")
	for _, c := range []struct {
		from *project
		args []string
		says string
	}{
		{h.in(t.TempDir()), []string{"key", "ls"}, "the embedded service in " + h.state()},
		{configured, []string{"key", "ls", "--home", h.state()}, "the embedded service in " + h.state()},
		{h.in(t.TempDir(), append(good, "DEPLOYCTL_SERVER=deployctl.example.test:7460")...), []string{"key", "ls"},
			"the bucket deployctl at " + s.S3Endpoint},
	} {
		if r := c.from.run(t, c.args...); r.code != 0 || !strings.Contains(r.stderr.String(), c.says) {
			t.Errorf("%v does not say %q but\n%s", c.args, c.says, r.said())
		}
	}
}

func TestAServiceThatLacksTheNewestKeySaysSoAndIsNotReady(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	good, _ := h.parts(t)
	good = h.namespaced(t, good, "outdated")
	keys := []string{base64.StdEncoding.EncodeToString(make([]byte, 32)),
		base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))}
	with := func(key string) *project {
		return h.in(t.TempDir(), slices.Concat(good, []string{"DEPLOYCTL_S3_PREFIX=outdated/", "DEPLOYCTL_KEY=" +
			key})...)
	}
	listen, health := porttest.Address(t), porttest.Address(t)
	serve := with(keys[0]).start(t, "serve", "--listen", listen, "--health-listen", health)
	serve.says(t, "serving")
	first := h.in(t.TempDir(), "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN=the-first-token")
	token := strings.TrimSpace(first.must(t, "token", "create", "root", "--role", "admin", "--organization", "*"))
	with(keys[1]+","+keys[0]).must(t, "key", "rotate")
	with(keys[1]).must(t, "key", "rotate")
	root := h.in(t.TempDir(), "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN="+token)
	var r *ran
	eventually(t, "the token is read anew", func() bool { r = root.run(t, "stack", "ls", "--all"); return r.code != 0 })
	serve.says(t, "call failed")
	for _, text := range []string{r.said(), serve.said()} {
		if !strings.Contains(text, "tokens/root was sealed with the key") ||
			!strings.Contains(text, "restart every serve and worker with the service's current key") {
			t.Errorf("it does not say what to do:\n%s", text)
		}
	}
	eventually(t, "it is not ready", func() bool { return answers(health, "/readyz") == http.StatusServiceUnavailable })
	serve.says(t, "not ready")
}
