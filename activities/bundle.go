package activities

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/recovery"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/pulumi/pulumi/sdk/v3/go/common/encoding"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// unpackParallel bounds the files that are fetched at a time.
const unpackParallel = 16

// unpack gives the directory of a project on this worker and what its Pulumi.yaml says. The directory of a bundle is made
// once; what is installed into it stays there. Without a bundle it is empty. The caller uses dir; see shelf.
func (a *Activities) unpack(ctx context.Context, s *session, dir string) (string, *workspace.Project, error) {
	stack, bundle := s.update.StackName, s.request.Bundle
	var manifest deployments.Manifest
	var err error
	if bundle != "" {
		if manifest, err = a.Store.Bundle(ctx, stack, bundle); err != nil {
			return "", nil, err
		}
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
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

// loadProject reads what a program may have changed since it was unpacked: the program sees what is wrong with it, and may have
// made it a link to what it is not to see.
func loadProject(box *sandbox.Box, root string) (*workspace.Project, error) {
	for _, name := range []string{"Pulumi.yaml", "Pulumi.yml", "Pulumi.json"} {
		path := filepath.Join(root, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		text, err := box.ReadFile(path)
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%s cannot be read: %w", name, err)
		}
		language := encoding.YAML
		if filepath.Ext(name) == ".json" {
			language = encoding.JSON
		}
		text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // which some editors begin files with
		project, err := workspace.LoadProjectBytes(text, path, language)
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%s cannot be read: %w", name, err)
		}
		return project, nil
	}
	return nil, deployments.Errorf(deployments.CodeInvalid, "the bundle has no Pulumi.yaml")
}

// fetch makes a directory of the manifest's files, whole or not at all.
func (a *Activities) fetch(ctx context.Context, s *session, m deployments.Manifest, dir string) error {
	var making string
	var files *os.Root // out of which no link leads that a program may make meanwhile
	err := s.box.Do(func() (err error) {
		if making, err = os.MkdirTemp(filepath.Dir(dir), ".unpacking-"); err == nil {
			files, err = os.OpenRoot(making)
		}
		return err
	})
	if err != nil {
		return local(err)
	}
	defer func() { _ = errors.Join(files.Close(), os.RemoveAll(making)) }() // it was renamed, unless something failed

	errs := make(chan error, len(m.Files))
	slots := make(chan struct{}, unpackParallel)
	for _, f := range m.Files {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			errs <- recovery.Do("unpacking "+f.Path, func() error { return a.fetchFile(ctx, s, f, files) })
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
	if err := os.Rename(making, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(dir); there != nil { // else another session was faster
			return local(err)
		}
	}
	return nil
}

func (a *Activities) fetchFile(ctx context.Context, s *session, f deployments.File, files *os.Root) error {
	path := filepath.FromSlash(f.Path)
	if !filepath.IsLocal(path) {
		return deployments.Errorf(deployments.CodeInvalid, "the bundle has a file %q outside the project", f.Path)
	}
	data, err := a.Store.File(ctx, s.update.StackName, f.Digest)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if f.Mode&0o111 != 0 {
		mode = 0o700
	}
	return local(s.box.Do(func() error {
		if err := files.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return files.WriteFile(path, data, mode)
	}))
}

// local is an error of this worker's disk.
func local(err error) error {
	if err == nil {
		return nil
	}
	return deployments.Errorf(deployments.CodeUnavailable, "the worker cannot keep the project's files: %w", err)
}
