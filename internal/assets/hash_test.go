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

	"github.com/deployctl/deployctl/internal/remote"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/waittest"
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
	h := hasher{t.Context(), Source{Dir: dir, Remote: remote.New(nil, true)}}
	for name, a := range map[string]asset.Asset{
		"a text": {Text: "text"}, "no text": {}, "a file": {Path: "file"},
		"an absolute path": {Path: filepath.Join(dir, "file")}, "a link": {Path: "site/to-file"},
		"a URI": {URI: "file://" + filepath.Join(dir, "file")}, "a page": {URI: server.URL + "/file"},
	} {
		ours, theirs := a, a
		must(t, theirs.EnsureHashWithWD(dir))
		if err := h.asset(&ours); err != nil || ours.Hash != theirs.Hash {
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
		if err := h.archive(&ours); err != nil || ours.Hash != theirs.Hash {
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
	must(t, Source{Dir: dir}.Hash(t.Context(), values))
	theirFile, theirInner := asset.Asset{Path: "file"}, archive.Archive{Path: "site"}
	must(t, theirFile.EnsureHashWithWD(dir))
	must(t, theirInner.EnsureHashWithWD(dir))
	if file.Hash != theirFile.Hash || inner.Hash != theirInner.Hash || made.Hash != "given" {
		t.Errorf("the hashes are %q, %q and %q", file.Hash, inner.Hash, made.Hash)
	}
}

func TestWhatIsNotThereIsNamedAsTheProgramNamesIt(t *testing.T) {
	dir := t.TempDir()
	h := hasher{t.Context(), Source{Dir: dir, Remote: remote.New(nil, true)}}
	for _, a := range []*archive.Archive{{Path: "./nowhere"}, {Path: "./nowhere.zip"},
		{Assets: map[string]any{"it": &asset.Asset{Path: "./nowhere"}}}} {
		err := h.archive(a)
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
	h := hasher{t.Context(), Source{Dir: dir, Remote: remote.New(nil, true)}}
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
		if err := h.archive(a); err == nil || a.Hash != "" {
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
	policy, _, err := sandbox.New(sandbox.Options{Mode: sandbox.Namespace, Hide: []string{hidden}})
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
	ctx := waittest.Context(t)
	hashed := make(chan struct{})
	go func() {
		defer close(hashed)
		for range 2000 {
			a := &asset.Asset{Path: swapped}
			if err := (hasher{ctx, Source{Box: box, Dir: dir}}).asset(a); err == nil && a.Hash != own.Hash && a.Hash != "" {
				t.Errorf("it has the hash %s", a.Hash)
				return
			}
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
	public := hasher{t.Context(), Source{Remote: remote.New(nil, false)}}
	h := hasher{t.Context(), Source{Remote: remote.New(nil, true)}}
	within := func(a any) resource.PropertyValue {
		return resource.NewProperty(&archive.Archive{Assets: map[string]any{"it": a}})
	}
	large := &asset.Asset{URI: server.URL + "/large"}
	for name, c := range map[string]struct {
		h    hasher
		v    resource.PropertyValue
		says string
	}{
		"an asset":            {h, resource.NewProperty(large), "larger than 64 MiB"},
		"a part of one":       {h, within(large), "larger than 64 MiB"},
		"an archive":          {h, resource.NewProperty(&archive.Archive{URI: server.URL + "/a.zip"}), "larger than 64 MiB"},
		"a zip within one":    {h, within(&archive.Archive{URI: server.URL + "/a.zip"}), "larger than 64 MiB"},
		"what is not there":   {h, resource.NewProperty(&asset.Asset{URI: server.URL + "/missing"}), "404"},
		"a private address":   {public, resource.NewProperty(large), "assets.private-hosts"},
		"without any fetcher": {hasher{t.Context(), Source{}}, resource.NewProperty(large), "have the program"},
	} {
		if err := c.h.value(c.v); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(to []byte) (int, error) {
	clear(to)
	return len(to), nil
}

func TestAHashThatNobodyWaitsForIsNotComputed(t *testing.T) {
	endless := filepath.Join(t.TempDir(), "endless")
	files(t, filepath.Dir(endless), "endless")
	must(t, os.Truncate(endless, 1<<40))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := (hasher{ctx, Source{}}).asset(&asset.Asset{Path: endless}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
