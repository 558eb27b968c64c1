// Package pythontest makes Python packages for tests, which pip installs without a registry.
package pythontest

import (
	"archive/zip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Wheel writes a package as a wheel into a directory. The files are named by their paths below site-packages; a name
// in the form of Python modules, with underscores, is the package's name, too.
func Wheel(dir, name, version string, files map[string][]byte) error {
	info := fmt.Sprintf("%s-%s.dist-info/", name, version)
	all := maps.Clone(files)
	all[info+"METADATA"] = fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)
	all[info+"WHEEL"] = []byte("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	record := ""
	for _, path := range append(slices.Sorted(maps.Keys(all)), info+"RECORD") {
		record += path + ",,\n"
	}
	all[info+"RECORD"] = []byte(record)
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%s-py3-none-any.whl", name, version)))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	w := zip.NewWriter(file)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		part, err := w.Create(path)
		if err != nil {
			return err
		}
		if _, err := part.Write(all[path]); err != nil {
			return err
		}
	}
	return w.Close()
}
