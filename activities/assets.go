package activities

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"

	"github.com/deployctl/deployctl/internal/sandbox"
)

// hasher computes the hashes of assets and archives that a program has left to its engine. It reads only what the program
// itself could read: a hash tells whether a file that nobody may read has some content.
type hasher struct {
	box *sandbox.Box
	dir string // of the program: relative paths begin there
}

// hashAssets sets the hashes that are missing in values of a program.
func (m *monitor) hashAssets(values resource.PropertyMap) error {
	h := hasher{m.session.box, m.session.programDir()}
	for key, v := range values {
		if err := h.value(v); err != nil {
			return fmt.Errorf("the hash of the asset in %q cannot be computed: %w", key, err)
		}
	}
	return nil
}

func (h hasher) value(v resource.PropertyValue) error {
	switch {
	case v.IsAsset():
		return h.asset(v.AssetValue())
	case v.IsArchive():
		return h.archive(v.ArchiveValue())
	case v.IsSecret():
		return h.value(v.SecretValue().Element)
	case v.IsOutput():
		return h.value(v.OutputValue().Element)
	case v.IsArray():
		for _, e := range v.ArrayValue() {
			if err := h.value(e); err != nil {
				return err
			}
		}
	case v.IsObject():
		for _, e := range v.ObjectValue() {
			if err := h.value(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h hasher) asset(a *asset.Asset) error {
	if a.Hash != "" {
		return nil
	}
	if err := h.readable(a.Path, a.URI); err != nil {
		return err
	}
	return h.box.Do(func() error { return a.EnsureHashWithWD(h.dir) })
}

func (h hasher) archive(a *archive.Archive) error {
	if a.Hash != "" {
		return nil
	}
	if err := h.readableArchive(a); err != nil {
		return err
	}
	return h.box.Do(func() error { return a.EnsureHashWithWD(h.dir) })
}

func (h hasher) readableArchive(a *archive.Archive) error {
	for _, member := range a.Assets {
		var err error
		switch member := member.(type) {
		case *asset.Asset:
			err = h.readable(member.Path, member.URI)
		case *archive.Archive:
			err = h.readableArchive(member)
		}
		if err != nil {
			return err
		}
	}
	return h.readable(a.Path, a.URI)
}

// readable is an error if the program itself could not read what lies at a path, or below it, or at a URI.
func (h hasher) readable(path, uri string) error {
	if at, err := url.Parse(uri); err == nil && at.Scheme == "file" {
		path = at.Path
	}
	if path == "" {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.dir, path)
	}
	return h.box.Do(func() error {
		return filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			file, err := h.box.Open(path)
			if err != nil {
				return err
			}
			return errors.Join(err, file.Close())
		})
	})
}
