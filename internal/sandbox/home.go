package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ownInHome are paths in HOME at which every room has something of its own, because tools write there.
var ownInHome = []string{".cache", ".npm", "go", ".pulumi", ".config/configstore", ".local/state", ".local/share/pnpm",
	".m2/repository", ".gradle/caches", ".gradle/daemon", ".gradle/native", ".gradle/notifications", ".nuget/packages",
	".nuget/plugins", ".yarn/berry", ".bun/install", ".dotnet/tools"}

// furnishHome puts links into the home of a room that lead to what the user has in HOME: programs find the user's
// files, where they cannot change them, and their own caches.
func (b *Box) furnishHome() error {
	from, err := os.UserHomeDir()
	if err != nil {
		return nil //nolint:nilerr // without HOME there is nothing to be linked
	}
	home, err := os.OpenRoot(b.Home())
	if err != nil {
		return err
	}
	linkAll(home, from, "")
	return home.Close()
}

// linkAll links the entries of a directory of HOME. A program may have put something else there, which stays.
func linkAll(home *os.Root, from, dir string) {
	entries, _ := os.ReadDir(filepath.Join(from, dir)) // what cannot be read is not linked
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		within := func(own string) bool { return strings.HasPrefix(own, path+"/") }
		switch {
		case slices.Contains(ownInHome, path):
		case slices.ContainsFunc(ownInHome, within):
			if err := home.Mkdir(path, 0o700); err == nil || errors.Is(err, os.ErrExist) {
				linkAll(home, from, path)
			}
		default:
			_ = home.Symlink(filepath.Join(from, path), path) // it may be there
		}
	}
}
