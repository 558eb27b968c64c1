package project

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project/npmworkspace"
	"github.com/deployctl/deployctl/internal/project/pythonproject"
	"golang.org/x/sync/errgroup"
)

// What an update may take along.
const (
	MaxFile   = deployments.MaxFile
	MaxBundle = deployments.MaxBundle
	MaxFiles  = deployments.MaxFiles
)

// uploads in flight at a time.
const uploads = 8

// Bundle is the set of files that an update takes along.
type Bundle struct {
	Manifest deployments.Manifest
	root     string            // directory that the manifest's paths are relative to
	sources  map[string]string // by digest: a file with that content
	dirs     []string          // in which files were looked for
	asked    *asked            // nil: not yet
}

// asked is which files of a bundle a stack does not have.
type asked struct {
	stack   deployments.StackName
	missing []string
}

// Root returns the directory that the paths of the manifest are relative to.
func (b *Bundle) Root() string { return b.root }

// Directories returns the directories in which files were looked for, as absolute paths.
func (b *Bundle) Directories() []string { return b.dirs }

// Gather lists and digests the project's files: everything below its directory and below the paths of deploy.include
// that .deployctlignore does not exclude; and those of policy packs, given by their directories. Symbolic links are
// followed, and must not lead out.
func (p *Project) Gather(policyPacks ...string) (*Bundle, error) {
	includes, err := p.includes()
	if err != nil {
		return nil, err
	}
	b := &Bundle{root: p.Dir, sources: map[string]string{}}
	for _, include := range includes {
		b.root = commonAncestor(b.root, include)
	}
	if err := p.wholeWorkspace(b.root); err != nil {
		return nil, err
	}
	w := walker{roots: append([]string{p.Dir}, includes...), base: b.root}
	for _, root := range w.roots {
		if err := w.enter(root); err != nil {
			return nil, err
		}
	}
	for n, pack := range policyPacks {
		if err := w.policyPack(n, pack); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Rel(b.root, p.Dir)
	if err != nil {
		return nil, err
	}
	if dir != "." {
		b.Manifest.Dir = filepath.ToSlash(dir)
	}
	b.dirs = w.dirs
	return b, b.digest(w.found)
}

// includes gives the absolute paths of deploy.include.
func (p *Project) includes() ([]string, error) {
	deploy, _ := p.Definition.AdditionalKeys["deploy"].(map[string]any)
	list, _ := deploy["include"].([]any)
	var paths []string
	for _, item := range list {
		text := fmt.Sprint(item)
		path, err := filepath.EvalSymlinks(filepath.Join(p.Dir, filepath.FromSlash(text)))
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid,
				"deploy.include in %s names %q, which cannot be read: %w", p.File, text, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// wholeWorkspace refuses a Node or Python program that is a member of a workspace whose root is outside base, the
// directory that the bundle is taken from: what it imports of the workspace would be asked of a public registry, where
// anybody may have taken its name.
func (p *Project) wholeWorkspace(base string) error {
	root := p.workspace()
	if root == "" || within(root, base) {
		return nil
	}
	include, err := filepath.Rel(p.Dir, root)
	if err != nil {
		return err
	}
	return deployments.Errorf(deployments.CodeInvalid, "the program is a package of the workspace in %s, which an "+
		"update has to take along: "+
		"add %q to deploy.include in %s, and exclude what is not needed in %s there", root, filepath.ToSlash(include),
		p.File, IgnoreFile)
}

// workspace is the root of the workspace that the program is a member of, or empty.
func (p *Project) workspace() string {
	top := filepath.VolumeName(p.Dir) + string(filepath.Separator)
	program := filepath.Join(p.Dir, filepath.FromSlash(p.Definition.Main))
	switch runtime := p.Definition.Runtime.Name(); {
	case npmworkspace.Runtime(runtime):
		if dir := npmworkspace.Package(program, p.Dir, os.ReadFile); dir != "" {
			return npmworkspace.Root(dir, top, os.ReadFile)
		}
	case runtime == pythonproject.Runtime:
		if dir := pythonproject.Declared(program, p.Dir, os.ReadFile); dir != "" {
			return pythonproject.Workspace(dir, top, os.ReadFile)
		}
	}
	return ""
}

func commonAncestor(a, b string) string {
	for !within(b, a) {
		a = filepath.Dir(a)
	}
	return a
}

// within says whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// digest reads every file and fills in the manifest.
func (b *Bundle) digest(found map[string]string) error {
	if len(found) > MaxFiles {
		return deployments.Errorf(deployments.CodeInvalid,
			"the project has %d files; an update takes at most %d along. Exclude some in %s", len(found), MaxFiles,
			IgnoreFile)
	}
	var total int64
	for name, path := range found {
		f, err := digestFile(path)
		if err != nil {
			return err
		}
		f.Path = name
		if f.Size > MaxFile {
			return tooLarge(name, f.Size, MaxFile)
		}
		total += f.Size
		b.Manifest.Files = append(b.Manifest.Files, f)
		b.sources[f.Digest] = path
	}
	slices.SortFunc(b.Manifest.Files, func(x, y deployments.File) int { return strings.Compare(x.Path, y.Path) })
	if total > MaxBundle {
		largest := slices.MaxFunc(b.Manifest.Files, func(x, y deployments.File) int {
			return cmp.Compare(x.Size, y.Size)
		})
		return deployments.Errorf(deployments.CodeInvalid,
			"the project's files are %d MiB; an update takes at most %d MiB along. Exclude some in %s; the largest "+
				"is %s (%d MiB)",
			total>>20, MaxBundle>>20, IgnoreFile, largest.Path, largest.Size>>20)
	}
	return nil
}

func tooLarge(name string, size, limit int64) error {
	return deployments.Errorf(deployments.CodeInvalid,
		"%s is %d MiB; an update takes files of at most %d MiB along. Exclude it in %s", name, size>>20, limit>>20,
		IgnoreFile)
}

func digestFile(path string) (deployments.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return deployments.File{}, deployments.Errorf(deployments.CodeInvalid,
			"cannot read a file of the project; exclude it in %s if it is not needed: %w", IgnoreFile, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return deployments.File{}, err
	}
	hash := sha256.New()
	size, err := io.Copy(hash, io.LimitReader(file, MaxFile+1))
	if err != nil {
		return deployments.File{}, err
	}
	mode := uint32(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	return deployments.File{Digest: "sha256:" + hex.EncodeToString(hash.Sum(nil)), Mode: mode,
		Size: max(size, info.Size())}, nil
}

// Ask asks which files of the bundle the service does not have, before the next Upload.
func (b *Bundle) Ask(ctx context.Context, service deployments.Bundles, stack deployments.StackName) error {
	missing, err := service.Missing(ctx, stack, b.Manifest)
	if err == nil {
		b.asked = &asked{stack, missing}
	}
	return err
}

// Upload sends what the service does not have yet and returns the bundle's digest.
func (b *Bundle) Upload(ctx context.Context, service deployments.Bundles, stack deployments.StackName) (string, error) {
	if b.asked == nil || b.asked.stack != stack {
		if err := b.Ask(ctx, service, stack); err != nil {
			return "", err
		}
	}
	missing := b.asked.missing
	b.asked = nil
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	for _, digest := range missing {
		group.Go(func() error {
			content, err := os.ReadFile(b.sources[digest])
			if err != nil {
				return err
			}
			sum := sha256.Sum256(content)
			if "sha256:"+hex.EncodeToString(sum[:]) != digest {
				return deployments.Errorf(deployments.CodeConflict,
					"%s changed while it was being uploaded; run this again", b.sources[digest])
			}
			return service.PutFile(groupCtx, stack, digest, content)
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	return service.PutManifest(ctx, stack, b.Manifest)
}
