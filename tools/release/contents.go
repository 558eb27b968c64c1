package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// bills writes for each program of a platform which modules are linked into it, as CycloneDX has it: what the program
// itself says.
func (r *release) bills(dist string, b build) error {
	for _, name := range b.programs {
		info, err := buildinfo.ReadFile(b.paths[name])
		if err != nil {
			return err
		}
		bom := r.bill(b, name, info)
		path := fmt.Sprintf("%s_%s_%s_%s.cdx.json", name, r.version, b.os, b.arch)
		if err := create(dist, path, func(w io.Writer) error {
			return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) bill(b build, name string, info *debug.BuildInfo) *cyclonedx.BOM {
	program := cyclonedx.Component{Type: cyclonedx.ComponentTypeApplication, Name: name, Version: r.version,
		BOMRef: name, PackageURL: fmt.Sprintf("pkg:golang/%s@%s?goos=%s&goarch=%s", info.Main.Path, r.version, b.os, b.arch),
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}}
	parts := []cyclonedx.Component{part("std", info.GoVersion, "")}
	for _, dep := range info.Deps {
		if own(dep.Path) { // of the same workspace: its version is the release's
			parts = append(parts, part(dep.Path, r.version, ""))
			continue
		}
		dep = cmp.Or(dep.Replace, dep)
		parts = append(parts, part(dep.Path, dep.Version, dep.Sum))
	}
	var needed []string
	for _, p := range parts {
		needed = append(needed, p.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + identifier(r.commit+" "+r.version+" "+b.String()+" "+name)
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &program}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: name, Dependencies: &needed}}
	return bom
}

// part describes a module; sum is what go.sum has of it.
func part(path, version, sum string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	c := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, BOMRef: url,
		PackageURL: url}
	if digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(digest) > 0 {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}}
	}
	return c
}

// own reports whether a module is one of the project.
func own(path string) bool {
	return path == project || strings.HasPrefix(path, project+"/")
}

// identifier makes a UUID of a text: the same of the same, as version 8 of RFC 9562 leaves it to us.
func identifier(text string) string {
	id := sha256.Sum256([]byte(text))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

var licence = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

// licencesOf returns the licences of the modules that are linked into a program, and of Go.
func (r *release) licencesOf(program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	dirs, err := r.modules()
	if err != nil {
		return nil, err
	}
	root, err := output(r.root, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := appendLicences(&b, "Go "+info.GoVersion, root); err != nil {
		return nil, err
	}
	for _, dep := range info.Deps {
		if own(dep.Path) {
			continue
		}
		dir, known := dirs[dep.Path]
		if !known {
			return nil, fmt.Errorf("the module %s, which %s has, is not on this machine", dep.Path, filepath.Base(program))
		}
		dep = cmp.Or(dep.Replace, dep)
		if err := appendLicences(&b, dep.Path+" "+dep.Version, dir); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// modules returns where the modules are that the tree is built with, by their paths.
func (r *release) modules() (map[string]string, error) {
	text, err := output(r.root, "env", workspace, "go", "list", "-m", "-json=Path,Dir", "all")
	if err != nil {
		return nil, err
	}
	found, in := map[string]string{}, json.NewDecoder(strings.NewReader(text))
	for {
		var m struct{ Path, Dir string }
		if err := in.Decode(&m); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		if m.Dir != "" {
			found[m.Path] = m.Dir
		}
	}
}

func appendLicences(b *bytes.Buffer, of, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%s\n%s\n\n", strings.Repeat("=", 80), of)
	before := b.Len()
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licence.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s\n\n", bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\r\n"), []byte("\n")))
	}
	if b.Len() == before {
		fmt.Fprintf(b, "Its module has no licence beside it: see https://pkg.go.dev/%s?tab=licenses\n\n",
			strings.Fields(of)[0])
	}
	return nil
}

// sumsFile has the checksums of everything else.
const sumsFile = "SHA256SUMS"

// sums writes the checksums of all files of a release, for sha256sum -c.
func sums(dist string) error {
	files, err := below(dist)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f file) bool { return f.source == "" })
	var b bytes.Buffer
	for _, f := range files {
		in, err := os.Open(f.source)
		if err != nil {
			return err
		}
		digest := sha256.New()
		_, err = io.Copy(digest, in)
		if err := errors.Join(err, in.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", digest.Sum(nil), f.name)
	}
	return create(dist, sumsFile, func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err })
}
