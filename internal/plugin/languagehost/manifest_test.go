//go:build unix

package languagehost_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAManifestThatIsAPipeOrHugeIsNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newProgram(t, "nodejs", dir, map[string]string{"package.json": `{}`})
	for _, name := range []string{"pipe", "huge"} {
		module := filepath.Join(dir, "node_modules", name)
		if err := os.MkdirAll(module, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "node_modules", "pipe", "package.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := make([]byte, 17<<20)
	for i := range huge {
		huge[i] = ' '
	}
	copy(huge, `{"name": "huge", "version": "1.0.0", "pulumi": {"resource": true}}`)
	if err := os.WriteFile(filepath.Join(dir, "node_modules", "huge", "package.json"), huge, 0o600); err != nil {
		t.Fatal(err)
	}
	packages, err := p.lang.RequiredPackages(t.Context())
	if err != nil || len(packages) != 0 {
		t.Errorf("%+v %v", packages, err)
	}
}

func TestTheVersionOfAPackageIsItsOwnAndNotThatOfAnExtension(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"base", "more"} {
		if err := os.MkdirAll(filepath.Join(dir, "node_modules", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := newProgram(t, "nodejs", dir, map[string]string{
		"package.json":                   `{}`,
		"node_modules/base/package.json": `{"name": "base", "version": "1.0.0", "pulumi": {"resource": true}}`,
		"node_modules/more/package.json": `{"name": "more", "version": "3.0.0", "pulumi": {"resource": true,
			"name": "base", "version": "2.0.0",
			"extensionParameterization": {"name": "more", "version": "3.0.0", "value": "AQI="}}}`,
	})
	packages, err := p.lang.RequiredPackages(t.Context())
	if err != nil || len(packages) != 2 || packages[0].Name != "base" || packages[0].Version != "2.0.0" ||
		packages[1].Name != "base" || packages[1].Version != "1.0.0" {
		t.Errorf("%+v %v", packages, err)
	}
}
