package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// wired is a program of a net, and of a web server that is linked to it and has a secret.
func wired(net, zone string) string {
	return steps("{register: "+net+", type: fake:index:Auto, properties: {zone: "+zone+"}}",
		"{register: web, type: fake:index:Auto, properties: {links: ['${"+net+".arn}'], secretText: sesame}}")
}

// inState returns the resource of the stack's state that has a name.
func (s *scene) inState(t *testing.T, name string) apitype.ResourceV3 {
	t.Helper()
	list := s.exported(t).Resources
	i := slices.IndexFunc(list, func(r apitype.ResourceV3) bool { return r.URN.Name() == name && !r.Delete })
	if i < 0 {
		return apitype.ResourceV3{}
	}
	return list[i]
}

func TestTheStateIsChangedByCommand(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, wired("net", "a"))
	net := string(s.inState(t, "net").URN)
	web := string(s.inState(t, "web").URN)

	var listed []struct{ URN, Name, ID string }
	must(t, json.Unmarshal([]byte(s.must(t, "state", "ls", "--json")), &listed))
	if urns := s.must(t, "state", "ls", "--urns"); len(listed) != 4 || !strings.Contains(urns, net+"\n"+web+"\n") {
		t.Errorf("the state has %v, and as URNs\n%s", listed, urns)
	}
	shown := s.must(t, "state", "show", "web")
	if !strings.Contains(shown, `secretText: "[secret]"`) || strings.Contains(shown, "sesame") {
		t.Errorf("it is shown as\n%s", shown)
	}
	for _, args := range [][]string{{"state", "show", web, "--show-secrets"},
		{"state", "show", "web", "--json", "--show-secrets"}} {
		if shown := s.must(t, args...); !strings.Contains(shown, "sesame") {
			t.Errorf("%q does not show the secret but\n%s", args, shown)
		}
	}
	s.fails(t, 2, []string{"no resource wbe; did you mean web?"}, "state", "show", "wbe")

	s.must(t, "state", "protect", "net")
	if !s.inState(t, "net").Protect {
		t.Error("it is not protected")
	}
	s.fails(t, 2, []string{"cannot be deleted", web, "--target-dependents"}, "state", "delete", "net", "--yes")
	s.fails(t, 2, []string{net, "protection", "--force"}, "state", "delete", "net", "--target-dependents", "--yes")
	s.fails(t, 2, []string{"needs confirmation"}, "state", "unprotect", net)
	s.must(t, "state", "unprotect", net, "--yes")
	if said := s.must(t, "state", "repair", "--yes"); !strings.Contains(said, "nothing to change") {
		t.Errorf("a repair says %s", said)
	}

	s.must(t, "state", "rename", "net", "lan", "--yes")
	s.write(t, "scenario.yaml", wired("lan", "a"))
	s.update(t, "up").expect(t, map[string]int{"same": 3})
	s.must(t, "state", "taint", "web")
	s.update(t, "preview").expect(t, map[string]int{"replace": 1, "same": 2})
	s.must(t, "state", "untaint", "web")
	s.does(t)
	s.must(t, "state", "taint", "web")
	s.update(t, "up")
	s.does(t, "create web", "delete web")

	s.env = append(s.env, "EDITOR=sed -i 's/fake:index:Auto::web/fake:index:Auto::www/'")
	s.must(t, "state", "edit", "--yes")
	if s.inState(t, "web").URN != "" || s.inState(t, "www").URN == "" {
		t.Error("what was edited is not the state")
	}
	s.env = append(s.env, `EDITOR=sed -i 's/"urn": "\(.*\)::lan"/"urn": "\1::gone"/'`)
	s.fails(t, 2, []string{"cannot be imported"}, "state", "edit", "--yes")
	s.must(t, "state", "delete", "www", "--yes")
	s.must(t, "state", "delete", "lan", "--force", "--yes")
	// The state does not have them any more, but what has a generated name is found to be the stack's.
	s.update(t, "up").expect(t, map[string]int{"create": 1, "import": 1, "same": 1, "update": 1})

	var history []struct{ Kind, Message string }
	must(t, json.Unmarshal([]byte(s.must(t, "stack", "history", "--json")), &history))
	if !slices.ContainsFunc(history, func(u struct{ Kind, Message string }) bool {
		return u.Kind == "edit" && strings.HasPrefix(u.Message, "rename "+net)
	}) {
		t.Errorf("the history is %v", history)
	}
}

func TestResourcesMoveToTheStateOfAnotherStack(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, wired("net", "a"))
	s.must(t, "stack", "init", "prod")
	s.must(t, "stack", "select", "dev")
	s.fails(t, 2, []string{"needs confirmation"}, "state", "move", "web", "--dest", "prod")
	s.must(t, "state", "move", "web", "--dest", "prod", "--yes")
	if s.inState(t, "web").URN != "" || s.inState(t, "net").URN == "" {
		t.Error("the first stack has not the rest")
	}
	if shown := s.must(t, "state", "show", "web", "--stack", "prod", "--show-secrets"); !strings.Contains(shown,
		"sesame") || !strings.Contains(shown, "urn:pulumi:prod::") {
		t.Errorf("it is shown as\n%s", shown)
	}
	s.fails(t, 2, []string{"name another stack"}, "state", "move", "web", "--stack", "prod", "--dest", "prod", "--yes")
	s.must(t, "refresh", "--yes", "--skip-preview", "--stack", "prod")
	s.does(t)
	s.must(t, "destroy", "--yes", "--skip-preview", "--stack", "prod")
	s.does(t, "delete web")
}

func TestWhyAndGraphFollowDependencies(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, wired("net", "a"))
	s.write(t, "scenario.yaml", wired("net", "b"))
	s.update(t, "up", "--message", "another zone")
	s.must(t, "state", "protect", "web")

	type why struct {
		URN, Op, Reason string
		Changes         []struct {
			Path string
			From []struct{ URN, Op, Reason string }
		}
	}
	var answer struct {
		Changed, Made struct {
			Update struct{ Version string }
		}
		Cause why
		Since []struct{ Kind string }
	}
	must(t, json.Unmarshal([]byte(s.must(t, "why", "web", "--json")), &answer))
	if answer.Changed.Update.Version != "2" || answer.Made.Update.Version != "1" || len(answer.Since) != 1 {
		t.Errorf("it was made and changed by %+v", answer)
	}
	changes := answer.Cause.Changes
	if len(changes) != 1 || !strings.HasPrefix(changes[0].Path, "links") || len(changes[0].From) != 1 ||
		!strings.HasSuffix(changes[0].From[0].URN, "::net") || !strings.Contains(changes[0].From[0].Reason, "arn") {
		t.Errorf("the cause is %+v", answer.Cause)
	}
	for _, text := range []string{"last changed by version 2: up", "another zone", "because of ",
		"zone: \"a\" → \"b\"", "made by version 1: up"} {
		if said := s.must(t, "why", "web"); !strings.Contains(said, text) {
			t.Errorf("it does not say %q but\n%s", text, said)
		}
	}
	drawn := s.must(t, "graph", "--short-node-name", "--ignore-parent-edges")
	if !strings.Contains(drawn, `label="links"`) || strings.Count(drawn, "->") != 1 {
		t.Errorf("the graph is\n%s", drawn)
	}
}

func TestTheSecretsProviderOfAStackIsChanged(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, wired("net", "a"))
	s.must(t, "config", "set", "token", "swordfish", "--secret")
	service := s.project.env
	for _, kind := range []string{"passphrase", "default"} {
		s.project.env = append(slices.Clone(service), "PULUMI_CONFIG_PASSPHRASE=open")
		s.must(t, "stack", "change-secrets-provider", kind)
		if kind == "default" {
			s.project.env = service
		}
		if got := strings.TrimSpace(s.must(t, "config", "get", "token")); got != "swordfish" {
			t.Errorf("%s: the configuration has %q", kind, got)
		}
		if shown := s.must(t, "state", "show", "web", "--show-secrets"); !strings.Contains(shown, "sesame") {
			t.Errorf("%s: the state has\n%s", kind, shown)
		}
		stored := map[string]string{"passphrase": "passphrase", "default": "service"}[kind]
		if got := s.must(t, "stack", "export"); !strings.Contains(got, `"type": "`+stored+`"`) ||
			strings.Contains(got, "sesame") {
			t.Errorf("%s: the state is\n%s", kind, got)
		}
		s.update(t, "up").expect(t, map[string]int{"same": 3})
	}
	s.does(t)
}

func TestSecretsAreEncryptedWithAKeyOfAKeyManagementService(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, wired("net", "a"))
	s.must(t, "config", "set", "token", "swordfish", "--secret")
	keys := harness.NewKeyService(t)
	s.project.env = append(s.project.env, keys.Env()...)
	s.fails(t, 2, []string{"is not a secrets provider", "hashivault://NAME"}, "stack", "change-secrets-provider",
		"vault://x")
	for _, url := range []string{"hashivault://stacks", "awskms://alias/stacks?region=eu-central-1"} {
		s.must(t, "stack", "change-secrets-provider", url)
		if got := strings.TrimSpace(s.must(t, "config", "get", "token")); got != "swordfish" {
			t.Errorf("%s: the configuration has %q", url, got)
		}
		s.must(t, "config", "set", "other", "marlin", "--secret")
		file := s.read(t, "Pulumi.dev.yaml")
		if !strings.Contains(file, "secretsprovider: "+url) || !strings.Contains(file, "encryptedkey: ") ||
			strings.Contains(file, "marlin") {
			t.Errorf("%s: the file is\n%s", url, file)
		}
		s.update(t, "up").expect(t, map[string]int{"same": 3})
		if shown := s.must(t, "state", "show", "web", "--show-secrets"); !strings.Contains(shown, "sesame") {
			t.Errorf("%s: the state has\n%s", url, shown)
		}
		exported := s.must(t, "stack", "export")
		if !strings.Contains(exported, `"type": "cloud"`) || !strings.Contains(exported, `"url": "`+url) ||
			strings.Contains(exported, "sesame") {
			t.Errorf("%s: the state is\n%s", url, exported)
		}
		s.write(t, "stack.json", exported)
		s.must(t, "stack", "import", "--file", "stack.json")
		s.update(t, "up").expect(t, map[string]int{"same": 3})
	}
	s.fails(t, 2, []string{"a key that the service cannot use"}, "schedule", "new", "drift", "--every", "1h")
	keys.Denies.Store(true)
	s.fails(t, 2, []string{"cannot decrypt the stack's data key", "you may not use the key"}, "up", "--yes")
	keys.Denies.Store(false)
	s.must(t, "stack", "change-secrets-provider", "default")
	before := keys.Calls()
	s.update(t, "up").expect(t, map[string]int{"same": 3})
	if file := s.read(t, "Pulumi.dev.yaml"); keys.Calls() != before || strings.Contains(file, "encryptedkey") {
		t.Errorf("with the service's own provider there are %d calls more, and the file is\n%s", keys.Calls()-before, file)
	}
	s.does(t)
}

func TestTheStateIsNotEditedDuringAnUpdate(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: b, type: fake:index:Named, properties: {name: b}}"))
	gate := s.gate(t, "a", fakecloud.Before)
	s.write(t, "scenario.yaml", steps("{register: b, type: fake:index:Named, properties: {name: b}}",
		"{register: a, type: fake:index:Named, properties: {name: a}}"))
	running := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	s.fails(t, 4, []string{"update ", "has the stack"}, "state", "delete", "b", "--yes")
	must(t, gate.Open(t.Context()))
	running.mustEnd(t, 0)
	s.must(t, "state", "delete", "b", "--yes")
}
