package session

import "testing"

// FuzzManifests reads the package.json of a program, which may have any text.
func FuzzManifests(f *testing.F) {
	f.Add([]byte(`{"scripts": {"install": "make"}, "workspaces": ["a"], "dependencies": {"b": "file:../b"}}`))
	f.Fuzz(func(_ *testing.T, text []byte) { selfContained(text) })
}
