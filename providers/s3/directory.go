package s3

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
	"golang.org/x/sync/errgroup"
)

// registrations is how many files are registered at once; how many are written at once is the engine's to say.
const registrations = 64

// Directory is the component deployctl:s3:Directory: an Object per file.
type Directory struct{ conn *connection }

// DirectoryIn declares a directory.
type DirectoryIn struct {
	Source       string `pulumi:"source" doc:"The directory, relative to the program's."`
	Bucket       string `pulumi:"bucket" doc:"The bucket's name."`
	Prefix       string `pulumi:"prefix,optional" doc:"The prefix of every key, such as docs/."`
	Index        string `pulumi:"index,optional" doc:"The key, below the prefix, of a generated page that lists all files; without it, there is no such page."`
	CacheControl string `pulumi:"cacheControl,optional" doc:"The Cache-Control header of responses."`
}

// DirectoryOut describes the files.
type DirectoryOut struct {
	Count int               `pulumi:"count" doc:"The number of files, including the generated page."`
	URLs  map[string]string `pulumi:"urls" doc:"The URL of each file, by its path."`
}

// Describe is the type's text in the schema.
func (d *Directory) Describe() string {
	return "A component with a deployctl:s3:Object for each file of a directory, with media types by extension. It " +
		"leaves out .git, " +
		".DS_Store, and symbolic links to directories or out of the directory."
}

// Construct registers an Object for each file, and one for the generated page.
func (d *Directory) Construct(ctx context.Context, c *provider.Construction, in DirectoryIn) (DirectoryOut, error) {
	if !c.Known("source", "prefix", "index") {
		return DirectoryOut{}, nil // a preview in which it is not known yet which files there are
	}
	conn, err := d.conn.get()
	if err != nil {
		return DirectoryOut{}, err
	}
	root := in.Source
	if !filepath.IsAbs(root) {
		root = filepath.Join(provider.ProgramDir(ctx), root)
	}
	files, err := list(root)
	if err != nil {
		return DirectoryOut{}, fmt.Errorf("source of %s: %w", c.Name, err)
	}
	children, err := in.children(c.Name, files)
	if err != nil {
		return DirectoryOut{}, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(registrations)
	for _, child := range children {
		group.Go(func() error {
			_, err := c.Register(ctx, child)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return DirectoryOut{}, err
	}
	out := DirectoryOut{Count: len(children)}
	if c.Known("bucket") {
		out.URLs = map[string]string{}
		for _, child := range children {
			key := child.Inputs["key"].StringValue()
			out.URLs[strings.TrimPrefix(key, in.Prefix)] = conn.objectURL(in.Bucket, key)
		}
	}
	return out, nil
}

func (in DirectoryIn) children(name string, files []string) ([]provider.Child, error) {
	var children []provider.Child
	add := func(file string, inputs resource.PropertyMap) {
		inputs["key"] = resource.NewProperty(in.Prefix + file)
		children = append(children, provider.Child{
			Type: "deployctl:s3:Object", Name: name + "/" + file, Inputs: inputs,
			Pass: []string{"bucket", "cacheControl"},
		})
	}
	for _, file := range files {
		// The path that the program gave, not the absolute one, so that the state does not depend on the machine.
		source := &asset.Asset{Path: filepath.Join(in.Source, filepath.FromSlash(file))}
		add(file, resource.PropertyMap{"source": resource.NewProperty(source)})
	}
	if in.Index == "" {
		return children, nil
	}
	if slices.Contains(files, in.Index) {
		return nil, fmt.Errorf("the generated index %q of %s is also a file in %s; choose another key for it", in.Index,
			name, in.Source)
	}
	page, err := indexPage(name, path.Dir(in.Index), files)
	if err != nil {
		return nil, err
	}
	add(in.Index, resource.PropertyMap{"content": resource.NewProperty(page)})
	return children, nil
}

// list returns the files below a directory as slash-separated paths, sorted.
func list(root string) ([]string, error) {
	real, err := files.RealPath(root)
	if err != nil {
		return nil, err
	}
	var listed []string
	err = fs.WalkDir(files.FS(real), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir(), entry.Name() == ".DS_Store":
			return nil
		case entry.Type()&fs.ModeSymlink != 0 && !leadsToFile(real, name):
			return nil
		case entry.Type()&^fs.ModeSymlink != 0:
			return nil // a device, a socket, a pipe
		}
		listed = append(listed, name)
		return nil
	})
	slices.Sort(listed)
	return listed, err
}

// leadsToFile says whether a symbolic link leads to an ordinary file inside the directory.
func leadsToFile(root, link string) bool {
	target, err := files.RealPath(filepath.Join(root, filepath.FromSlash(link)))
	if err != nil {
		return false
	}
	info, err := files.Stat(target)
	inside, relErr := filepath.Rel(root, target)
	return err == nil && relErr == nil && info.Mode().IsRegular() && filepath.IsLocal(inside)
}
