package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	files := map[string]string{
		"go.mod": "module example.test/app\n\ngo 1.26\n\n" +
			"require example.test/other v0.0.0\n\nreplace example.test/other => ./other\n",
		"main.go":      "package main\n\nimport \"example.test/app/file\"\n\nfunc main() { file.Lock() }\n",
		"other/go.mod": "module example.test/other\n\ngo 1.26\n",
	}
	unix, windows := "//go:build unix\n\npackage file\n\n", "//go:build windows\n\npackage file\n\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		fails string // what the error on Windows names; empty when there is none
	}{
		{"a package that is whole on both systems passes", map[string]string{
			"file/lock_unix.go":    unix + "func Lock() {}\n",
			"file/lock_windows.go": windows + "func Lock() {}\n",
		}, ""},
		{"a wrong type in a function of a file for Windows fails", map[string]string{
			"file/lock_unix.go":    unix + "func Lock() {}\n",
			"file/lock_windows.go": windows + "func Lock() { var n int = \"one\"; _ = n }\n",
		}, "lock_windows.go:5"},
		{"a function that only the other system has fails", map[string]string{
			"file/lock_unix.go":    unix + "func Lock() {}\n",
			"file/lock_windows.go": windows + "func Unlock() {}\n",
		}, "file.Lock"},
		{"a package whose files are all for the other system fails", map[string]string{
			"file/lock_unix.go": unix + "func Lock() {}\n",
		}, "build constraints exclude all Go files"},
		{"a file that does not parse fails", map[string]string{
			"file/lock_unix.go":    unix + "func Lock() {}\n",
			"file/lock_windows.go": windows + "func Lock( {}\n",
		}, "lock_windows.go:5"},
		{"a dependency that lacks what is called on Windows fails", map[string]string{
			"file/lock.go":        "package file\n\nimport \"example.test/other\"\n\nfunc Lock() { other.Lock() }\n",
			"other/other_unix.go": "//go:build unix\n\npackage other\n\nfunc Lock() {}\n",
			"other/other.go":      "package other\n",
		}, "other.Lock"},
		{"the function bodies of a dependency are skipped", map[string]string{
			"file/lock.go":   "package file\n\nimport \"example.test/other\"\n\nfunc Lock() { other.Lock() }\n",
			"other/other.go": "package other\n\nfunc Lock() { undefined() }\n",
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, some := range []map[string]string{files, c.files} {
				for name, text := range some {
					write(t, filepath.Join(dir, name), text)
				}
			}
			if err := check(dir, "darwin/arm64", "./..."); err != nil {
				t.Errorf("on macOS: %v", err)
			}
			err := check(dir, "windows/amd64", "./...")
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("on Windows: %v, want %q", err, c.fails)
			}
		})
	}
}

func TestCheckRefusesAnUnknownSystem(t *testing.T) {
	for _, system := range []string{"windows", "windows/none"} {
		if err := check(t.TempDir(), system, "./..."); err == nil {
			t.Errorf("%s passes", system)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
