package languagehost

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sandbox"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestAnEndlessListOfPackagesIsNotKept has a program bring a virtual environment whose Python never ends what it says.
func TestAnEndlessListOfPackagesIsNotKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it takes a shell")
	}
	for name, script := range map[string]string{
		"many lines":    "#!/bin/sh\nexec yes a line of the list\n",
		"one long line": "#!/bin/sh\nexec tr '\\0' x </dev/zero\n",
		"empty lines":   "#!/bin/sh\nexec yes ''\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"venv/pyvenv.cfg": "", "venv/bin/python": script})
			if err := os.Chmod(filepath.Join(dir, "venv", "bin", "python"), 0o700); err != nil { //nolint:gosec // it is run
				t.Fatal(err)
			}
			options, err := structpb.NewStruct(map[string]any{"virtualenv": "venv"})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p := python{tools: tools{env: os.Environ(), box: sandbox.Open()}}
			info := &pulumirpc.ProgramInfo{RootDirectory: dir, ProgramDirectory: dir, Options: options}
			_, err = p.required(t.Context(), info)
			if err == nil || !strings.Contains(err.Error(), "has written more than 16 MiB") {
				t.Errorf("it is answered with %v", err)
			}
			runtime.ReadMemStats(&after)
			if taken := (after.Sys - before.Sys) >> 20; taken > 256 {
				t.Errorf("it took %d MiB", taken)
			}
		})
	}
}

// TestWhatLibrariesNeedIsBounded has a program install more libraries with large parameters than are kept.
func TestWhatLibrariesNeedIsBounded(t *testing.T) {
	const each = 8 << 20
	dir := t.TempDir()
	modules := map[string]string{}
	value := strings.Repeat("AAAA", each/3)
	for i := range 2 + maxDependencyBytes/each {
		modules[fmt.Sprintf("node_modules/m%d/package.json", i)] = fmt.Sprintf(
			`{"name": "m%d", "version": "1.0.0", "pulumi": {"resource": true, "parameterization": `+
				`{"name": "m%d", "value": "%s"}}}`, i, i, value)
	}
	files(t, dir, modules)
	n := node{tools: tools{box: sandbox.Open()}}
	info := &pulumirpc.ProgramInfo{RootDirectory: dir, ProgramDirectory: dir}
	if _, err := n.required(t.Context(), info); err == nil || !strings.Contains(err.Error(), "more than 1000 packages") {
		t.Errorf("it is answered with %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := n.required(ended, info); err == nil {
		t.Error("what nobody waits for is looked for to its end")
	}
}

func files(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	for path, text := range all {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
