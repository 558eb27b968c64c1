package pluginhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/usertest"
)

func TestPluginsThatProgramsMayNotReadAreNotInstalled(t *testing.T) {
	if os.Geteuid() == 0 { // who may read everything
		usertest.Run(t, "^TestPluginsThatProgramsMayNotReadAreNotInstalled$")
		return
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "plugins"), 0); err != nil {
		t.Fatal(err)
	}
	h := open(t, Options{PulumiHome: home, Env: []string{"PATH=" + t.TempDir()}})
	if _, err := h.Language(t.Context(), "go"); err != nil {
		t.Errorf("the language host that is part of this: %v", err)
	}
	_, err := h.Provider(t.Context(), Package{Name: "aws", Version: "6.1.2"}, "")
	if err == nil || !strings.Contains(err.Error(), "is not installed") || !strings.Contains(err.Error(), "may not read") {
		t.Errorf("%v", err)
	}
}
