package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/encoding"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// unpackParallel bounds the files that are fetched at the same time.
const unpackParallel = 16

// unpack returns the directory of a project on this worker and its Pulumi.yaml. The directory of a bundle is created
// once; packages that are installed into it stay there. Without a bundle it is empty. The caller pins dir.
func (a *Sessions) unpack(ctx context.Context, s *Session, dir string) (string, *workspace.Project, error) {
	stack, bundle := s.update.StackName, s.request.Bundle
	var manifest deployments.Manifest
	var err error
	if bundle != "" {
		if manifest, err = a.Store.Programs.Bundle(ctx, stack, bundle); err != nil {
			return "", nil, err
		}
	}
	if _, err := s.box.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := a.fetch(ctx, s, manifest, dir); err != nil {
			return "", nil, err
		}
	}
	if bundle == "" {
		return dir, nil, nil
	}
	root := filepath.Join(dir, filepath.FromSlash(manifest.Dir))
	project, err := loadProject(s.box, root)
	return root, project, err
}

// loadProject reads Pulumi.yaml through the sandbox, because a program may have changed it since it was unpacked: it
// may be a link to a file that the program must not see, and the program sees the errors about it.
func loadProject(box *sandbox.Box, root string) (*workspace.Project, error) {
	for _, name := range []string{"Pulumi.yaml", "Pulumi.yml", "Pulumi.json"} {
		path := filepath.Join(root, name)
		text, err := box.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%s cannot be read: %w", name, err)
		}
		language := encoding.YAML
		if filepath.Ext(name) == ".json" {
			language = encoding.JSON
		}
		text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // the byte order mark, which some editors write
		project, err := workspace.LoadProjectBytes(text, path, language)
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%s cannot be read: %w", name, err)
		}
		return project, nil
	}
	return nil, deployments.Errorf(deployments.CodeInvalid, "the bundle has no Pulumi.yaml")
}

// fetch creates a directory with the manifest's files, all or none.
func (a *Sessions) fetch(ctx context.Context, s *Session, m deployments.Manifest, dir string) (err error) {
	bundles, err := s.box.Bundles()
	if err != nil {
		return bundlecache.Unavailable(err)
	}
	files := unpacking{s, bundles, ".unpacking-" + rand.Text()}
	// removes what is left after a failure; after a success it was renamed
	defer func() { _ = errors.Join(bundles.RemoveAll(files.name), bundles.Close()) }()
	if err := s.box.Do(func() error { return bundles.Mkdir(files.name, 0o700) }); err != nil {
		return bundlecache.Unavailable(err)
	}
	errs := make(chan error, len(m.Files))
	slots := make(chan struct{}, unpackParallel)
	for _, f := range m.Files {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			errs <- panics.Do("unpacking "+f.Path, func() error { return a.fetchFile(ctx, f, files) })
		}()
	}
	for range m.Files {
		if e := <-errs; err == nil {
			err = e
		}
	}
	if err != nil {
		return err
	}
	if err := bundles.Rename(files.name, filepath.Base(dir)); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := bundles.Stat(filepath.Base(dir)); there != nil { // otherwise another session was faster
			return bundlecache.Unavailable(err)
		}
	}
	return nil
}

// unpacking is the directory of a bundle that is not complete yet. Running programs of the organization can change it.
type unpacking struct {
	session *Session
	bundles sandbox.Directory
	name    string
}

// write creates a file. An existing file is an error: it may be a pipe.
func (u unpacking) write(path string, data []byte, mode fs.FileMode) error {
	path = filepath.Join(u.name, path)
	return u.session.box.Do(func() error {
		if err := u.bundles.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		file, err := u.bundles.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		return errors.Join(err, file.Close())
	})
}

func (a *Sessions) fetchFile(ctx context.Context, f deployments.File, files unpacking) error {
	path := filepath.FromSlash(f.Path)
	if !filepath.IsLocal(path) {
		return deployments.Errorf(deployments.CodeInvalid, "the bundle has a file %q outside the project", f.Path)
	}
	data, err := a.Store.Programs.File(ctx, files.session.update.StackName, f.Digest)
	if err != nil {
		return err
	}
	if int64(len(data)) > f.Size { // the quota of its organization was held against the sizes in the manifest
		return deployments.Errorf(deployments.CodeInvalid, "the file %q has %d bytes, and the bundle says %d: send the "+
			"project again with `deployctl up`", f.Path, len(data), f.Size)
	}
	mode := fs.FileMode(0o600)
	if f.Mode&0o111 != 0 {
		mode = 0o700
	}
	return bundlecache.Unavailable(files.write(path, data, mode))
}
