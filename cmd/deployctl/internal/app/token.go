package app

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// localToken reads or creates the token of this user's clients of the embedded service. It stays the same over
// restarts, so that waiting clients continue. The caller holds the home's lock.
func localToken(home string) (text, path string, err error) {
	path = filepath.Join(home, "token")
	found, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(found))) > 0 {
		return strings.TrimSpace(string(found)), path, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", "", err
	}
	text = "local-" + base64.RawURLEncoding.EncodeToString(random)
	return text, path, writeToken(path, text)
}

// writeToken writes a token to a file that only this user can read. A reader sees the old token or the new one.
func writeToken(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// selfPath returns the path of this binary.
func selfPath() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
