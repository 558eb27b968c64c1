package deployments

import (
	"path"
	"strings"
)

// Limits of a project bundle.
const (
	MaxFile   = 256 << 20 // bytes of one file
	MaxBundle = 1 << 30   // bytes of all files
	MaxFiles  = 50_000
	// maxPath is the longest path on the systems that workers run on.
	maxPath = 4096
)

// File is one file of a project bundle.
type File struct {
	Path   string `json:"path"` // relative, with '/'
	Digest string `json:"digest"`
	Mode   uint32 `json:"mode"`
	Size   int64  `json:"size"`
}

// Manifest lists the files of a project bundle, sorted by path. Its digest names the bundle.
type Manifest struct {
	Files []File `json:"files"`
	// Dir is the program's directory inside the bundle (where Pulumi.yaml is).
	Dir string `json:"dir,omitempty"`
}

// Bytes returns how large all files are.
func (m Manifest) Bytes() (total int64) {
	for _, f := range m.Files {
		total += f.Size
	}
	return total
}

// Validate reports, as CodeInvalid, why the manifest cannot be unpacked: a path outside the directory, a path that is
// both a file and a directory, files that are not sorted, or more than the limits.
func (m Manifest) Validate() error {
	if len(m.Files) > MaxFiles {
		return Errorf(CodeInvalid, "the project has %d files; an update takes at most %d along", len(m.Files), MaxFiles)
	}
	total := int64(0)
	files := make(map[string]bool, len(m.Files))
	for i, f := range m.Files {
		if err := f.validate(); err != nil {
			return err
		}
		if i > 0 && m.Files[i-1].Path >= f.Path {
			return Errorf(CodeInvalid, "the manifest's files are not sorted by path: %s comes after %s", quoted(f.Path),
				quoted(m.Files[i-1].Path))
		}
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				return Errorf(CodeInvalid, "%s is a file in the manifest, and has the file %s below it", quoted(dir),
					quoted(f.Path))
			}
		}
		files[f.Path] = true
		total += f.Size
	}
	switch {
	case total > MaxBundle:
		return Errorf(CodeInvalid, "the project's files are %d MiB; an update takes at most %d MiB along", total>>20,
			MaxBundle>>20)
	case m.Dir != "" && !localPath(m.Dir):
		return Errorf(CodeInvalid, "%s is not a directory inside the project", quoted(m.Dir))
	}
	return nil
}

func (f File) validate() error {
	switch {
	case !localPath(f.Path):
		return Errorf(CodeInvalid, "%s is not a path inside the project", quoted(f.Path))
	case f.Size < 0 || f.Size > MaxFile:
		return Errorf(CodeInvalid, "the file %s has %d bytes; at most %d are possible", quoted(f.Path), f.Size, MaxFile)
	}
	return ValidateDigest(f.Digest)
}

func localPath(p string) bool {
	return p != "" && len(p) <= maxPath && p != "." && p != ".." && path.Clean(p) == p && !path.IsAbs(p) &&
		!strings.HasPrefix(p, "../") &&
		!strings.ContainsAny(p, "\\\x00")
}
