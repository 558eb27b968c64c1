package plugins

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestALockIsReadAsItWasWritten(t *testing.T) {
	l := &Lock{}
	sum := strings.Repeat("ab", 32)
	l.Pin(Request{Plugin: Plugin{Kind: "resource", Name: "random", Version: "4.16.0"}}, "linux-amd64", sum)
	l.Pin(Request{Plugin: Plugin{Kind: "resource", Name: "acme", Version: "1.0.0"}, URL: "https://acme.example"},
		"linux-amd64", sum)
	l.Pin(Request{Plugin: Plugin{Kind: "resource", Name: "random", Version: "4.16.0"}}, "darwin-arm64", sum)
	text, err := l.Bytes()
	must(t, err)
	read, err := ParseLock(text)
	must(t, err)
	if read.Format != l.Format || !reflect.DeepEqual(read.Plugins, l.Plugins) || len(read.Plugins) != 2 ||
		read.Plugins[0].Name != "acme" {
		t.Errorf("%s\n%+v", text, read)
	}
}

func TestALockThatIsNotValidIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "lock: 2\nplugins: []\n", "lock: 1\nplugins: [{kind: resource, name: ../x, version: 1.0.0}]\n",
		"lock: 1\nplugins: [{kind: provider, name: x, version: 1.0.0}]\n",
		"lock: 1\nplugins: [{kind: resource, name: x}]\n", "lock: 1\nplugin: []\n",
		"lock: 1\nplugins: [{kind: resource, name: x, version: 1.0.0, sha256: {linux-amd64: AB}}]\n",
	} {
		if l, err := ParseLock([]byte(text)); err == nil {
			t.Errorf("%q is %+v", text, l)
		}
	}
}

func TestAPluginIsInstalledAndPinned(t *testing.T) {
	p := newPublisher(t, "first")
	i := &Installer{Network: &Network{Private: true}, Lock: &Lock{}, Dir: filepath.Join(t.TempDir(), "plugins")}
	install := func(want bool) {
		t.Helper()
		if _, installed, err := i.Install(t.Context(), p.acme()); err != nil || installed != want {
			t.Fatalf("%v, %v", installed, err)
		}
	}
	content := func(want string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(i.Dir, "resource-acme-v1.0.0", "pulumi-resource-acme"))
		if err != nil || string(text) != want {
			t.Fatalf("%q, %v", text, err)
		}
	}
	install(true)
	content("first")
	install(false)
	if locked := i.Lock.Find(p.acme().normal(t)); locked == nil || locked.SHA256[Here] != p.sum() || p.requests() != 1 {
		t.Errorf("%+v after %d requests", locked, p.requests())
	}
	p.publish(t, "second")
	must(t, os.RemoveAll(filepath.Join(i.Dir, "resource-acme-v1.0.0")))
	if _, _, err := i.Install(t.Context(), p.acme()); err == nil {
		t.Error("another archive than the pinned one was installed")
	}
	i.Reinstall = true
	install(true)
	content("second")
	if i.Lock.Find(p.acme().normal(t)).SHA256[Here] != p.sum() {
		t.Error("the lock has the old digest")
	}
	i.Network = nil
	if _, _, err := i.Install(t.Context(), p.acme()); err == nil || !strings.Contains(err.Error(), "plugins.download") {
		t.Errorf("%v", err)
	}
}

func TestAPluginIsInstalledFromAFile(t *testing.T) {
	dir := t.TempDir()
	i := &Installer{Dir: filepath.Join(dir, "plugins")}
	archive, plain := filepath.Join(dir, "archive"), filepath.Join(dir, "plain")
	p := newPublisher(t, "archived")
	must(t, os.WriteFile(archive, p.archive, 0o600), os.WriteFile(plain, []byte("alone"), 0o600))
	for path, want := range map[string]string{archive: "archived", plain: "alone"} {
		must(t, i.InstallFile(p.acme().normal(t), path))
		text, err := os.ReadFile(filepath.Join(i.Dir, "resource-acme-v1.0.0", "pulumi-resource-acme"))
		if err != nil || string(text) != want {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// normal returns the plugin of a request in its one form.
func (r Request) normal(t *testing.T) Plugin {
	t.Helper()
	r, err := r.Normalized()
	must(t, err)
	return r.Plugin
}

func TestWhatAnotherCommandPinsMeanwhileIsKept(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	text, err := (&Lock{}).Onto(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aws", "kubernetes", "random"} {
		mine, err := ParseLock([]byte("lock: 1\nplugins: []\n")) // as it was when the command began
		if err != nil || mine.Changed() {
			t.Fatal(err)
		}
		mine.Pin(Request{Plugin: Plugin{Kind: "resource", Name: name, Version: "1.0.0"}}, "linux-amd64", sum)
		if text, err = mine.Onto(text); err != nil || !mine.Changed() {
			t.Fatal(err)
		}
	}
	all, err := ParseLock(text)
	if err != nil || len(all.Plugins) != 3 || all.Plugins[0].SHA256["linux-amd64"] != sum {
		t.Errorf("%+v, %v", all, err)
	}
}
