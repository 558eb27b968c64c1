// Package build says which build of deployctl this is.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// The linker sets these in releases (-X); without, they are what Go has recorded.
var version, commit, date string

// Info describes a build.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // a hash; ends in + if files were changed since
	Date    string `json:"date,omitempty"`   // of the commit
	// Revision is that of the workflow code: the build id that Temporal's worker deployments have. Empty in a build whose
	// workflows are not known.
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Of describes this build, whose workflow code has a revision.
func Of(revision string) Info {
	i := Info{Version: version, Commit: commit, Date: date, Revision: revision, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	recorded, ok := debug.ReadBuildInfo()
	if !ok {
		i.Version = cmp.Or(i.Version, "(unknown)")
		return i
	}
	i.Version = cmp.Or(i.Version, recorded.Main.Version, "(unknown)")
	if i.Commit != "" {
		return i
	}
	for _, s := range recorded.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = s.Value + i.Commit
		case "vcs.time":
			i.Date = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				i.Commit += "+"
			}
		}
	}
	return i
}
