package project

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/internal/values/glob"
)

// IgnoreFile lists what an update does not take along, in gitignore's syntax.
const IgnoreFile = ".deployctlignore"

// defaultIgnore comes before the file's own patterns, which can take any of it back with "!". Directories that hold
// pyvenv.cfg, Python's virtual environments, are left out as well.
var defaultIgnore = []string{".git/", ".hg/", ".svn/", "node_modules/", "__pycache__/", ".DS_Store"}

const virtualEnvironment = "pyvenv.cfg"

// pattern is one line of an ignore file.
type pattern struct {
	segments []string // as glob.Path takes them
	again    bool     // "!": takes back
	dirOnly  bool     // "/" at the end
}

// ignores decides by the last pattern that matches.
type ignores []pattern

// loadIgnores reads the ignore file of a directory, if it has one.
func loadIgnores(dir string) (ignores, error) {
	var list ignores
	for _, line := range defaultIgnore {
		list = list.add(line)
	}
	file, err := os.Open(filepath.Join(dir, IgnoreFile))
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		list = list.add(lines.Text())
	}
	return list, lines.Err()
}

// add appends a line of an ignore file.
func (list ignores) add(line string) ignores {
	line = strings.TrimSuffix(line, "\r")
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " ")
	}
	if line == "" || line[0] == '#' {
		return list
	}
	var p pattern
	if line[0] == '!' {
		p.again, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly, line = true, strings.TrimRight(line, "/")
	}
	anchored := strings.Contains(line, "/")
	p.segments = glob.Inside(strings.Split(strings.TrimPrefix(line, "/"), "/"))
	if !anchored {
		p.segments = append([]string{"**"}, p.segments...)
	}
	return append(list, p)
}

// match says whether a path, relative and with "/", is ignored. Its directories have been asked about before.
func (list ignores) match(name string, dir bool) bool {
	names := strings.Split(name, "/")
	for i := len(list) - 1; i >= 0; i-- {
		if p := list[i]; (dir || !p.dirOnly) && glob.Path(p.segments, names) {
			return !p.again
		}
	}
	return false
}
