//go:build unix

package assets

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/sandbox/remote"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

// files writes files with their names as content.
func files(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(name), 0o600))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// created makes a file and has something written to it.
func created(t *testing.T, path string, write func(io.Writer) error) {
	t.Helper()
	file, err := os.Create(path)
	must(t, err)
	must(t, write(file))
	must(t, file.Close())
}

// in returns a Hasher whose process runs in a directory, and in a box unless that is nil.
func in(t *testing.T, dir string, box *sandbox.Box) *Hasher {
	t.Helper()
	h := New(func(c process.Command) (*process.Process, error) {
		c.Dir, c.Env, c.Box = dir, os.Environ(), box
		return process.Start(c)
	})
	t.Cleanup(h.Close)
	return h
}

func writeTar(w io.Writer) error {
	t := tar.NewWriter(w)
	err := t.WriteHeader(&tar.Header{Name: "dir/", Typeflag: tar.TypeDir, Mode: 0o700})
	err = errors.Join(err, t.WriteHeader(&tar.Header{Name: "dir/./a", Typeflag: tar.TypeReg, Mode: 0o600, Size: 1}))
	_, errA := t.Write([]byte("a"))
	return errors.Join(err, errA, t.Close())
}

func writeZip(w io.Writer) error {
	z := zip.NewWriter(w)
	_, err := z.Create("dir/")
	a, errA := z.Create("dir/../a")
	if errA == nil {
		_, errA = a.Write([]byte("text of a"))
	}
	return errors.Join(err, errA, z.Close())
}

func writeGzip(w io.Writer) error {
	z := gzip.NewWriter(w)
	return errors.Join(writeTar(z), z.Close())
}

// shipped makes a directory with all that an archive can be made of.
func shipped(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files(t, dir, "file", "site/b", "site/a/c", "site/a.txt", "site/.pulumi/left out", "site/x/.pulumi",
		"site/"+strings.Repeat("long/", 40)+"name")
	for link, to := range map[string]string{"link": "site", "site/to-file": "../file", "site/to-dir": "a"} {
		must(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	created(t, filepath.Join(dir, "a.tar"), writeTar)
	created(t, filepath.Join(dir, "a.tar.gz"), writeGzip)
	created(t, filepath.Join(dir, "a.zip"), writeZip)
	return dir
}

func TestHashesAreThoseOfTheEcosystem(t *testing.T) {
	dir := shipped(t)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	h := in(t, dir, nil)
	for name, a := range map[string]asset.Asset{
		"a text": {Text: "text"}, "no text": {}, "a file": {Path: "file"},
		"an absolute path": {Path: filepath.Join(dir, "file")}, "a link": {Path: "site/to-file"},
		"a URI": {URI: "file://" + filepath.Join(dir, "file")}, "a page": {URI: server.URL + "/file"},
	} {
		ours, theirs := a, a
		must(t, theirs.EnsureHashWithWD(dir))
		if err := h.asset(t.Context(), &ours); err != nil || ours.Hash != theirs.Hash {
			t.Errorf("%s: %v, %s and not %s", name, err, ours.Hash, theirs.Hash)
		}
	}
	all := map[string]any{}
	archives := map[string]*archive.Archive{
		"nothing": {}, "a directory": {Path: "site"}, "a link to a directory": {Path: "link"},
		"a tar file": {Path: "a.tar"}, "gzip": {Path: "a.tar.gz"}, "zip": {Path: "a.zip"},
		"a fetched tar file": {URI: server.URL + "/a.tar"}, "a fetched zip": {URI: server.URL + "/a.zip"},
		"a URI": {URI: "file://" + filepath.Join(dir, "a.zip")},
		"members": {Assets: map[string]any{"b/../c": &asset.Asset{Path: "file"}, "a": &asset.Asset{Text: "text"},
			"page": &asset.Asset{URI: server.URL + "/file"}}},
		"one file twice": {Assets: map[string]any{"a": &archive.Archive{Path: "site"},
			"a/b": &asset.Asset{Text: "the second"}}},
	}
	for name, a := range archives {
		all[name] = &archive.Archive{Path: a.Path, URI: a.URI, Assets: a.Assets}
	}
	archives["each within another"] = &archive.Archive{Assets: map[string]any{"all": &archive.Archive{Assets: all}}}
	for name, a := range archives {
		ours, theirs := *a, *a
		must(t, theirs.EnsureHashWithWD(dir))
		if err := h.missing(t.Context(), &ours); err != nil || ours.Hash != theirs.Hash {
			t.Errorf("%s: %v, %s and not %s", name, err, ours.Hash, theirs.Hash)
		}
	}
}

// Providers and states get the hashes of the members, also of an archive whose own hash the program has given.
func TestWhatAnArchiveIsMadeOfHasHashes(t *testing.T) {
	dir := shipped(t)
	file, inner := &asset.Asset{Path: "file"}, &archive.Archive{Path: "site"}
	made := &archive.Archive{Hash: "given", Assets: map[string]any{
		"file": file, "deep": &archive.Archive{Assets: map[string]any{"inner": inner}},
	}}
	values := resource.PropertyMap{"made": resource.NewProperty(made)}
	must(t, in(t, dir, nil).Hash(t.Context(), values))
	theirFile, theirInner := asset.Asset{Path: "file"}, archive.Archive{Path: "site"}
	must(t, theirFile.EnsureHashWithWD(dir))
	must(t, theirInner.EnsureHashWithWD(dir))
	if file.Hash != theirFile.Hash || inner.Hash != theirInner.Hash || made.Hash != "given" {
		t.Errorf("the hashes are %q, %q and %q", file.Hash, inner.Hash, made.Hash)
	}
}

func TestWhatIsNotThereIsNamedAsTheProgramNamesIt(t *testing.T) {
	dir := t.TempDir()
	h := in(t, dir, nil)
	for _, a := range []*archive.Archive{{Path: "./nowhere"}, {Path: "./nowhere.zip"},
		{Assets: map[string]any{"it": &asset.Asset{Path: "./nowhere"}}}} {
		err := h.missing(t.Context(), a)
		if err == nil || strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "./nowhere") ||
			!strings.Contains(err.Error(), ".deployctlignore") {
			t.Errorf("%v", err)
		}
	}
}

func TestWhatIsNoArchiveIsRefused(t *testing.T) {
	dir := shipped(t)
	created(t, filepath.Join(dir, "links.tar"), func(w io.Writer) error {
		t := tar.NewWriter(w)
		return errors.Join(t.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}),
			t.Close())
	})
	must(t, syscall.Mkfifo(filepath.Join(dir, "site", "pipe"), 0o600))
	h := in(t, dir, nil)
	within := func(a *archive.Archive) *archive.Archive { return &archive.Archive{Assets: map[string]any{"it": a}} }
	for name, a := range map[string]*archive.Archive{
		"a file": {Path: "file"}, "what is not there": {Path: "nowhere"}, "a directory with a pipe": {Path: "site"},
		"a page":                                {URI: "http://127.0.0.1:1/page"},
		"a tar file with links":                 within(&archive.Archive{Path: "links.tar"}),
		"another scheme":                        {URI: "ftp://127.0.0.1/a.zip"},
		"a file that is not what its name says": within(&archive.Archive{Path: "site/to-file.zip"}),
		"no content":                            within(&archive.Archive{Hash: "hash"}),
		"a directory as a file":                 {Assets: map[string]any{"it": &asset.Asset{Path: "site"}}},
	} {
		if err := h.missing(t.Context(), a); err == nil || a.Hash != "" {
			t.Errorf("%s has the hash %q", name, a.Hash)
		}
	}
}

// swapping puts one file after the other in place of a path until the test ends.
func swapping(t *testing.T, path string, others ...string) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = os.Remove(path + ".new")
				_ = os.Link(others[i%len(others)], path+".new")
				_ = os.Rename(path+".new", path)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
}

func TestAnAssetThatIsSwappedMeanwhileHoldsNobodyUpAndTellsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs are kept apart on Linux only")
	}
	hidden, dir := t.TempDir(), t.TempDir()
	files(t, hidden, "key")
	policy, _, err := sandbox.New(sandbox.Options{Mode: sandbox.Namespace, Hide: []string{hidden},
		Shared: []string{filepath.Dir(dir)}}) // where the test has its directories
	must(t, err)
	box, err := policy.Box("mine", t.TempDir())
	must(t, err)
	defer func() { _ = box.Close() }()
	files(t, dir, "own")
	must(t, os.Symlink(filepath.Join(hidden, "key"), filepath.Join(dir, "link")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	swapped := filepath.Join(dir, "asset")
	must(t, os.Link(filepath.Join(dir, "own"), swapped))
	swapping(t, swapped, filepath.Join(dir, "own"), filepath.Join(dir, "link"), filepath.Join(dir, "own"),
		filepath.Join(dir, "pipe"))

	own := &asset.Asset{Text: "own"}
	must(t, own.EnsureHash())
	ctx, h := waittest.Context(t), in(t, dir, box)
	hashed := make(chan struct{})
	go func() {
		defer close(hashed)
		read := 0
		for range 300 {
			a := &asset.Asset{Path: swapped}
			switch err := h.asset(ctx, a); {
			case err != nil || a.Hash == "":
			case a.Hash == own.Hash:
				read++
			default:
				t.Errorf("it has the hash %s", a.Hash)
				return
			}
		}
		if read == 0 {
			t.Error("what is the program's own was never read")
		}
	}()
	waittest.For(t, "no hash waits for the pipe", hashed)
}

func TestWhatIsFetchedIsLimitedHoweverItIsHashed(t *testing.T) {
	endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.CopyN(w, zeros{}, remote.MaxBytes+1)
	})
	server := httptest.NewServer(endless)
	defer server.Close()
	h := in(t, t.TempDir(), nil)
	within := func(a any) resource.PropertyValue {
		return resource.NewProperty(&archive.Archive{Assets: map[string]any{"it": a}})
	}
	large := &asset.Asset{URI: server.URL + "/large"}
	for name, c := range map[string]struct {
		v    resource.PropertyValue
		says string
	}{
		"an asset":          {resource.NewProperty(large), "larger than 64 MiB"},
		"a part of one":     {within(large), "larger than 64 MiB"},
		"an archive":        {resource.NewProperty(&archive.Archive{URI: server.URL + "/a.zip"}), "larger than 64 MiB"},
		"a zip within one":  {within(&archive.Archive{URI: server.URL + "/a.zip"}), "larger than 64 MiB"},
		"what is not there": {resource.NewProperty(&asset.Asset{URI: server.URL + "/missing"}), "404"},
	} {
		if err := h.value(t.Context(), c.v); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(to []byte) (int, error) {
	clear(to)
	return len(to), nil
}

// endless makes a file whose hash takes longer than any test, and returns an asset of it.
func endless(t *testing.T) *asset.Asset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "endless")
	files(t, filepath.Dir(path), "endless")
	must(t, os.Truncate(path, 1<<40))
	return &asset.Asset{Path: path}
}

func TestNobodyWaitsForAHashAfterTheyHaveGone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := in(t, t.TempDir(), nil).asset(ctx, endless(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestAProcessThatIsKilledCostsTheHashesThatItWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, "file")
	h := in(t, dir, nil)
	must(t, h.asset(t.Context(), &asset.Asset{Path: "file"}))
	killed := h.reader
	ended := make(chan error, 1)
	go func() { ended <- h.asset(t.Context(), endless(t)) }()
	waittest.Until(t, "the process is asked", func() bool {
		killed.mu.Lock()
		defer killed.mu.Unlock()
		return len(killed.waiting) == 1
	})
	must(t, syscall.Kill(killed.process.Pid(), syscall.SIGKILL))
	if err := waittest.For(t, "whoever waits hears of it", ended); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v", err)
	}
	again := &asset.Asset{Path: "file"}
	if err := h.asset(t.Context(), again); err != nil || again.Hash == "" {
		t.Errorf("another process: %v", err)
	}
	h.Close()
	if err := h.asset(t.Context(), &asset.Asset{Path: "file"}); err == nil {
		t.Error("a process was started after the end")
	}
}

// A program has the rights of the process, and may have made it say anything.
func TestOnlyHashesOfWhatWasAskedForAreHeard(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	for said, want := range map[string]string{
		`{"ID":1,"Hash":"` + hash + `"}`:            "",
		`{"ID":1,"Index":1,"Hash":"` + hash + `"}`:  "has not said",
		`{"ID":1,"Index":-1,"Hash":"` + hash + `"}`: "has not said",
		`{"ID":2,"Hash":"` + hash + `"}`:            "has not said",
		`{"ID":1,"Hash":"../../x"}`:                 "has not said",
		`{"ID":1,"Hash":"0a"}`:                      "has not said",
		`nonsense`:                                  "has not said",
		`{"ID":1,"Hash":"` + hash + `","Error":"no"}` + "\n" + `{"ID":1,"End":true,"Error":"why"}`: "why",
	} {
		q := &question{hashes: make([]string, 1), end: make(chan error, 1)}
		r := &reader{waiting: map[int]*question{1: q}}
		for line := range strings.Lines(said) {
			r.hear(line)
		}
		r.hear(`{"ID":1,"End":true}`)
		r.hear(`{"ID":1,"End":true}`)
		err := <-q.end
		asExpected := err == nil && q.hashes[0] == hash
		if want != "" {
			asExpected = err != nil && strings.Contains(err.Error(), want)
		}
		if !asExpected {
			t.Errorf("%s: %q, %v", said, q.hashes, err)
		}
	}
}
