package main

import (
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
)

// shells have completions.
var shells = []string{"bash", "fish", "zsh"}

// archive writes the archive of a platform: its programs, and what belongs to them.
func (r *release) archive(dist string, b build) error {
	name := fmt.Sprintf("%s_%s_%s_%s", client, r.version, b.os, b.arch)
	files := r.papers("")
	for _, program := range b.programs {
		files = append(files, file{name: program + b.extension(), mode: 0o755, source: b.paths[program]})
	}
	for _, shell := range shells {
		files = append(files, file{name: "completions/" + client + "." + shell, mode: 0o644,
			content: r.completions[shell]})
	}
	files = complete(files)
	if b.os == "windows" {
		files = slices.DeleteFunc(files, func(f file) bool { return f.name == "completions/" })
		return create(dist, name+".zip", func(w io.Writer) error { return writeZip(w, name+"/", files, r.time) })
	}
	packed, err := tarGz(name+"/", files, r.time)
	if err != nil {
		return err
	}
	return create(dist, name+".tar.gz", func(w io.Writer) error { _, err := w.Write(packed); return err })
}

// papers are the texts that go with each package, in a directory of it.
func (r *release) papers(dir string) []file {
	papers := []file{{name: path.Join(dir, "LICENSES-OF-OTHERS.txt"), mode: 0o644, content: r.licences}}
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		papers = append(papers, file{name: path.Join(dir, name), mode: 0o644, source: filepath.Join(r.root, name)})
	}
	return papers
}
