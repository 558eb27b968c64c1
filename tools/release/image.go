package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is who processes of the image are, unless they are started as another one; nobody else's files are theirs.
const user = 65532

// image writes the image of all Linux platforms, as a directory in the layout of OCI and as a tar of that.
func (r *release) image(dist string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range r.builds {
		if b.os != "linux" {
			continue
		}
		image, err := r.imageOf(b)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: b.os, Architecture: b.arch}}})
	}
	if manifest, err := index.IndexManifest(); err != nil || len(manifest.Manifests) == 0 {
		return err
	}
	name := fmt.Sprintf("%s_%s_oci", client, r.version)
	dir := filepath.Join(dist, name)
	// Two levels, so that a copy of the one image of the layout is an image of all platforms.
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version})); err != nil {
		return err
	}
	files, err := below(dir)
	if err != nil {
		return err
	}
	return create(dist, name+".tar", func(w io.Writer) error { return writeTar(w, "", files, r.time) })
}

// imageOf returns the image of a platform: a layer that seldom changes, and one of the program.
func (r *release) imageOf(b build) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]file{
		{
			{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\n%s:x:%d:\n", client, user)},
			{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/root:/sbin/nologin\n"+
				"%s:x:%d:%d::%s:/sbin/nologin\n", client, user, user, "/var/lib/deployctl-worker")},
			{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates()},
			{name: "tmp/", mode: 0o1777},
			{name: "var/lib/deployctl-worker/", mode: 0o711, uid: user, gid: user},
		},
		append(r.papers("usr/share/doc/deployctl"),
			file{name: "usr/bin/" + client, mode: 0o755, source: b.paths[client]}),
	} {
		packed, err := tarGz("", complete(files), r.time)
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(packed)), nil
		}, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer,
			History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "tools/release"}})
		if err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(image, r.configuration(b, image))
}

// configuration is how processes of an image run.
func (r *release) configuration(b build, image v1.Image) *v1.ConfigFile {
	made, err := image.ConfigFile()
	if err != nil {
		panic(err) // it is in memory
	}
	c := made.DeepCopy()
	c.OS, c.Architecture, c.Created = b.os, b.arch, v1.Time{Time: r.time}
	c.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{"/usr/bin/" + client},
		Cmd:        []string{"serve"},
		// users.json of a worker is in the directory that it has for all its files.
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/var/lib/deployctl-worker",
			"XDG_STATE_HOME=/var/lib"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"7460/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    client,
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.source":   "https://github.com/deployctl/deployctl",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return c
}

// certificates are those of the authorities that Mozilla trusts, but for those that it trusts with conditions, which a
// file of certificates cannot express.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return b.Bytes()
}

// below returns the files in a directory, for everybody to read, with directories, in their order.
func below(dir string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, file{name: filepath.ToSlash(name), mode: 0o644, source: path})
		return err
	})
	return complete(files), err
}

// chart writes the Helm chart, whose version is the release's.
func (r *release) chart(dist string) error {
	dir := filepath.Join(r.root, "deploy", "helm", client)
	files, err := below(dir)
	if err != nil {
		return err
	}
	for i, f := range files {
		if f.name != "Chart.yaml" {
			continue
		}
		text, err := os.ReadFile(f.source)
		if err != nil {
			return err
		}
		const none = "0.0.0"
		if strings.Count(string(text), none) != 2 {
			return fmt.Errorf("%s must have version and appVersion %s, in whose place a release has its own", f.source, none)
		}
		files[i].source, files[i].content = "", []byte(strings.ReplaceAll(string(text), none, r.version))
	}
	packed, err := tarGz(client+"/", files, r.time)
	if err != nil {
		return err
	}
	return create(dist, fmt.Sprintf("%s-%s.tgz", client, r.version), func(w io.Writer) error {
		_, err := w.Write(packed)
		return err
	})
}

// compose writes the compose file, whose images are of the release's version.
func (r *release) compose(dist string) error {
	text, err := os.ReadFile(filepath.Join(r.root, "deploy", "compose", "compose.yaml"))
	if err != nil {
		return err
	}
	text = asked.ReplaceAll(text, []byte(r.version))
	return create(dist, "compose-"+r.version+".yaml", func(w io.Writer) error { _, err := w.Write(text); return err })
}

// asked is where the compose file of the tree asks for the version.
var asked = regexp.MustCompile(`\$\{DEPLOYCTL_VERSION:[^}]*\}`)
