package templates

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

const (
	fetchTimeout = 5 * time.Minute
	maxFetch     = 512 << 20 // what one commit of the repository may have on the disk, compressed
	maxSaid      = 8 << 10   // of git's messages
)

// Git fetches a template from a git repository at an address such as https://HOST/OWNER/REPOSITORY/tree/BRANCH/DIR or
// git@HOST:OWNER/REPOSITORY, with the user's own git and its credentials. prompt lets git ask on the terminal.
//
// The repository is not checked out: its objects are read, so that no hook, filter, submodule or link of it has any
// effect.
func Git(ctx context.Context, address string, prompt bool) (*Template, error) {
	place, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "deployctl-template-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, deployments.Errorf(deployments.CodeUnavailable,
		"fetching the template took longer than %s", fetchTimeout))
	defer cancel()
	g := git{ctx, dir, prompt}
	if err := g.fetch(&place); err != nil {
		return nil, err
	}
	files, err := g.files(place)
	if err != nil {
		return nil, err
	}
	return parse(place.name(), files)
}

// git runs git on a bare repository of its own.
type git struct {
	ctx    context.Context
	dir    string
	prompt bool
}

// command returns a command whose configuration runs nothing of a repository. Address and names that come from others
// must follow a "--" in args.
func (g git) command(args ...string) *exec.Cmd {
	args = append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false",
		"-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false", "-c", "gc.auto=0",
		"-c", "maintenance.auto=false", "--git-dir", g.dir}, args...)
	cmd := exec.CommandContext(g.ctx, "git", args...)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name { // of a repository that the user may be in
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
			"GIT_COMMON_DIR", "GIT_NAMESPACE":
		default:
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_ALLOW_PROTOCOL=https:ssh:file", "LC_ALL=C")
	if !g.prompt {
		cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0")
	}
	return cmd
}

// run runs git and returns what it prints.
func (g git) run(args ...string) ([]byte, error) {
	cmd := g.command(args...)
	var stdout bytes.Buffer
	stderr := &tail{}
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, deployments.Errorf(deployments.CodeInvalid, "git is needed to fetch a template, and is not "+
			"installed: install it, or fetch the template yourself and name its directory")
	case g.ctx.Err() != nil:
		return nil, context.Cause(g.ctx)
	case err != nil:
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot fetch the template: %s",
			strings.TrimSpace(string(stderr.text)))
	}
	return stdout.Bytes(), nil
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-maxSaid):]
	return len(b), nil
}

// fetch fetches the one commit that the template is in, and completes the place.
func (g *git) fetch(place *address) error {
	if _, err := g.run("init", "--quiet", "--bare", "--template=", "--", g.dir); err != nil {
		return err
	}
	if err := g.resolve(place); err != nil {
		return err
	}
	watched, stop := context.WithCancelCause(g.ctx)
	defer stop(nil)
	fetching := *g
	fetching.ctx = watched
	go fetching.watch(stop)
	_, err := fetching.run("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", place.remote,
		place.ref)
	return err
}

// watch stops a fetch that brings too much.
func (g git) watch(stop context.CancelCauseFunc) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		var size int64
		_ = filepath.WalkDir(g.dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					size += info.Size()
				}
			}
			return nil // files come and go
		})
		if size > maxFetch {
			stop(deployments.Errorf(deployments.CodeInvalid, "the template's repository has more than %d MiB: fetch "+
				"the template yourself and name its directory", maxFetch>>20))
			return
		}
	}
}

// resolve divides what follows the repository in the address into a ref and a directory: a branch may have slashes in
// its name.
func (g git) resolve(place *address) error {
	if place.ref != "" || place.tree == "" {
		if place.ref == "" {
			place.ref = "HEAD"
		}
		return nil
	}
	listed, err := g.run("ls-remote", "--quiet", "--heads", "--tags", "--", place.remote)
	if err != nil {
		return err
	}
	if place.ref, place.dir = refIn(listed, place.tree); place.ref == "" {
		return deployments.Errorf(deployments.CodeInvalid, "%s has no branch and no tag named as in tree/%s", place.remote,
			place.tree)
	}
	return nil
}

// refIn divides the path below tree/ into the longest reference that is listed, or a commit, and a directory.
func refIn(listed []byte, tree string) (ref, dir string) {
	parts := strings.Split(tree, "/")
	for n := len(parts); n > 0; n-- {
		short := strings.Join(parts[:n], "/")
		for _, ref := range []string{"refs/heads/" + short, "refs/tags/" + short} {
			if bytes.Contains(listed, []byte("\t"+ref+"\n")) {
				return ref, strings.Join(parts[n:], "/")
			}
		}
	}
	if isHash(parts[0]) {
		return parts[0], strings.Join(parts[1:], "/")
	}
	return "", ""
}

func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// object is an entry of a tree.
type object struct {
	mode, id, path string
	size           int64
}

// files reads the files of the template.
func (g git) files(place address) ([]File, error) {
	tree := "FETCH_HEAD:" + place.dir
	listed, err := g.run("ls-tree", "-r", "-z", "-l", "--full-tree", tree)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the repository has no directory %q", place.dir)
	}
	objects, err := parseTree(listed)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(objects, func(o object) bool { return o.path == projectFile }) {
		return nil, noTemplate(place, objects)
	}
	if err := checkObjects(objects); err != nil {
		return nil, err
	}
	return g.read(objects)
}

// parseTree reads what ls-tree prints: "MODE TYPE ID SIZE\tPATH" for each entry.
func parseTree(listed []byte) ([]object, error) {
	var objects []object
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		about, path, found := strings.Cut(entry, "\t")
		fields := strings.Fields(about)
		if !found || len(fields) != 4 {
			return nil, deployments.Errorf(deployments.CodeInternal, "git lists a file as %q", entry)
		}
		o := object{mode: fields[0], id: fields[2], path: path}
		o.size, _ = strconv.ParseInt(fields[3], 10, 64) // "-" of a submodule
		objects = append(objects, o)
	}
	return objects, nil
}

// noTemplate says that a directory is no template, and which below it are.
func noTemplate(place address, objects []object) error {
	var below []string
	for _, o := range objects {
		if dir, found := strings.CutSuffix(o.path, "/"+projectFile); found {
			below = append(below, dir)
		}
	}
	if len(below) == 0 {
		return deployments.Errorf(deployments.CodeInvalid, "%s is no template: %w", place.remote, errNoProject)
	}
	slices.Sort(below)
	more := ""
	if len(below) > 60 {
		below, more = below[:60], ", …"
	}
	return deployments.Errorf(deployments.CodeInvalid, "%s is no template, but has some below it; add one of these to "+
		"the address: %s%s", place.remote, strings.Join(below, ", "), more)
}

// checkObjects refuses what read should not read.
func checkObjects(objects []object) error {
	if len(objects) > maxFiles {
		return tooMany(len(objects))
	}
	var total int64
	for _, o := range objects {
		if o.mode != "100644" && o.mode != "100755" {
			return deployments.Errorf(deployments.CodeInvalid, "the template has %q, which is no regular file: a "+
				"template may not have symbolic links or submodules", o.path)
		}
		if total += o.size; o.size > maxFile || total > maxTotal {
			return tooLarge(o.path)
		}
	}
	return nil
}

// read reads the contents of files.
func (g git) read(objects []object) ([]File, error) {
	cmd := g.command("cat-file", "--batch")
	var ids strings.Builder
	for _, o := range objects {
		ids.WriteString(o.id + "\n")
	}
	cmd.Stdin = strings.NewReader(ids.String())
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Run(); err != nil {
		return nil, deployments.Errorf(deployments.CodeInternal, "cannot read the template's files: %w", err)
	}
	files, from := []File{}, bufio.NewReader(&stdout)
	for _, o := range objects {
		content, err := readObject(from, o)
		if err != nil {
			return nil, err
		}
		files = append(files, File{o.path, content, o.mode == "100755"})
	}
	return files, nil
}

// readObject reads one object: a line "ID TYPE SIZE", the content, and a line feed.
func readObject(from *bufio.Reader, o object) ([]byte, error) {
	header, err := from.ReadString('\n')
	if want := fmt.Sprintf("%s blob %d\n", o.id, o.size); err != nil || header != want {
		return nil, deployments.Errorf(deployments.CodeInternal, "git gives %q for the file %q", header, o.path)
	}
	content := make([]byte, o.size+1)
	if _, err := io.ReadFull(from, content); err != nil {
		return nil, err
	}
	return content[:o.size], nil
}
