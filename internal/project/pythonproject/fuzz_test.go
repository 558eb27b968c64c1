package pythonproject

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// FuzzProjects reads the files of Python projects of strangers.
func FuzzProjects(f *testing.F) {
	f.Add("uv", "[project]\nname = \"a\"\n[tool.uv.workspace]\nmembers = [\"**/x\"]\n",
		"[[package]]\nname = \"a\"\nsource = {virtual = \".\"}\n")
	f.Add("poetry", "[tool.poetry]\npackage-mode = false\n",
		"[[package]]\nname = \"b\"\n[package.source]\ntype = \"file\"\n")
	f.Add("pip", "a = [[[[[[", "-e .\n--hash=x\\\n")
	f.Fuzz(func(t *testing.T, toolchain, manifest, lock string) {
		read := func(path string) ([]byte, error) {
			switch filepath.Base(path) {
			case Manifest:
				return []byte(manifest), nil
			case uvLock, poetryLock, Requirements:
				return []byte(lock), nil
			}
			return nil, fs.ErrNotExist
		}
		q, err := Find(Program{Dir: "/p/a", Root: "/p", Options: map[string]any{"toolchain": toolchain}}, read)
		if err != nil {
			return
		}
		_ = q.SelfContained(read)
		_, _ = q.Local(read)
		_, _ = Package("/p/a", read), Workspace("/p/a", "/p", read)
	})
}
