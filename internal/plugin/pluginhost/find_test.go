package pluginhost

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/internal/plugin/plugins"
)

// TestADirectoryOfPluginsIsReadWithinBounds has a directory as a program could make it, which the worker would list for
// each plugin that the program names.
func TestADirectoryOfPluginsIsReadWithinBounds(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "plugins")
	for _, name := range []string{"resource-a-v1.2.0", "resource-a-v1.10.0", "resource-a-v2.0.0",
		"resource-a-v3.0.0.tmp12", "resource-a-vx", "resource-a-b-v9.0.0", "language-a-v9.0.0"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"resource-a-v2.0.0.partial", "resource-a-v8.0.0"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := finder{home: home}
	wanted := plugins.Plugin{Kind: apitype.ResourcePlugin, Name: "a"}
	found, err := f.installed(dir, wanted)
	var versions []string
	for _, p := range found {
		versions = append(versions, p.version.String())
	}
	if err != nil || !slices.Equal(versions, []string{"1.10.0", "1.2.0"}) {
		t.Errorf("installed are %v, %v", versions, err)
	}
	for n := range mostInstalled {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.find(plugins.Request{Plugin: wanted}); err == nil || !strings.Contains(err.Error(), "more than 10000") {
		t.Errorf("with more entries: %v", err)
	}
}
