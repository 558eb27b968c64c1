package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// release is what is packed.
type release struct {
	root    string // of the tree
	version string
	commit  string
	time    time.Time // of the commit; every file in every package has it
	changes string    // the version's section of the changelog
	builds  []build
	// completions are the scripts by their shells, licences the texts of everything that is linked in.
	completions map[string][]byte
	licences    []byte
}

// target is a platform that programs are built for.
type target struct {
	os, arch string
	programs []string
}

func (t target) String() string { return t.os + "/" + t.arch }

// The names of the programs. The embedded service is one for Linux alone: it is tested nowhere else.
const client, embedded = "deployctl", "deployctl-embedded"

var targets = []target{
	{"linux", "amd64", []string{client, embedded}},
	{"linux", "arm64", []string{client, embedded}},
	{"darwin", "amd64", []string{client}},
	{"darwin", "arm64", []string{client}},
	{"windows", "amd64", []string{client}},
}

// build is what was built for a target: the paths of its programs, by their names.
type build struct {
	target
	paths map[string]string
}

// Versions are those of https://semver.org, without metadata of builds: nothing else can be a version of a Debian
// package, of a chart and of an image at once.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9a-z]+(\.[0-9a-z]+)*)?$`)

// read returns the release of a version of the tree, with nothing built yet. The tree must be that of a commit.
func read(root, version string) (*release, error) {
	if !semantic.MatchString(version) {
		return nil, fmt.Errorf("%q is no version: give one such as 1.2.3 or 1.3.0-rc.1 (make release VERSION=1.2.3)", version)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	r := &release{root: root, version: version}
	if r.changes, err = section(string(changelog), version); err != nil {
		return nil, err
	}
	changed, err := output(root, "git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		return nil, fmt.Errorf("a release is of a commit, but these files differ from it:\n%s\ncommit them, or undo that",
			changed)
	}
	if r.commit, err = output(root, "git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	when, err := output(root, "git", "log", "-1", "--format=%cI")
	if err != nil {
		return nil, err
	}
	r.time, err = time.Parse(time.RFC3339, when)
	r.time = r.time.UTC()
	return r, err
}

var heading = regexp.MustCompile(`(?m)^## +\[?([^\]\s]+)\]?.*$`)

// section returns what a changelog says of a version, without the heading.
func section(changelog, version string) (string, error) {
	found := heading.FindAllStringSubmatchIndex(changelog, -1)
	for i, at := range found {
		if changelog[at[2]:at[3]] != version {
			continue
		}
		end := len(changelog)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		if text := strings.TrimSpace(changelog[at[1]:end]); text != "" {
			return text + "\n", nil
		}
		return "", fmt.Errorf("CHANGELOG.md says nothing below the heading of version %s", version)
	}
	return "", fmt.Errorf("CHANGELOG.md has no section for version %s: rename \"## Unreleased\" to \"## %s\", put a new "+
		"one above it, and commit that", version, version)
}

// pack writes everything into a directory that is not there.
func (r *release) pack(dist string) error {
	if err := os.MkdirAll(dist, 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	var err error
	for _, b := range r.builds {
		err = errors.Join(err, r.archive(dist, b), r.bills(dist, b))
		if b.os == "linux" {
			err = errors.Join(err, r.debs(dist, b))
		}
	}
	if err = errors.Join(err, r.image(dist), r.chart(dist), r.compose(dist)); err != nil {
		return err
	}
	notes := filepath.Join(dist, "CHANGES-"+r.version+".md")
	if err := os.WriteFile(notes, []byte(r.changes), 0o644); err != nil { //nolint:gosec // for everybody
		return err
	}
	return sums(dist)
}
