package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockRetry is the pause between attempts to lock a file.
const lockRetry = 50 * time.Millisecond

// Shared is where the workers of an organization share archives.
type Shared interface {
	// Sum returns the digest of the archive that was downloaded for a key; "" if none was.
	Sum(ctx context.Context, key string) (string, error)
	// Read writes the archive with a digest to w; false if there is none.
	Read(ctx context.Context, sum string, w io.Writer) (bool, error)
	// Write stores an archive. It first records its digest for the key, unless one is recorded, and returns the recorded
	// one; if that is another one, the archive is not stored. For an empty key, nothing is recorded.
	Write(ctx context.Context, key, sum string, archive io.Reader) (recorded string, err error)
	// Version returns the version that was recorded last for a key, and when; "" if none was. SetVersion records one.
	Version(ctx context.Context, key string) (version string, at time.Time, err error)
	SetVersion(ctx context.Context, key, version string) error
}

// Fetcher brings plugins to a directory of this machine.
type Fetcher struct {
	Network *Network
	Lock    *Lock  // of the project; nil: it has none
	Shared  Shared // nil: the machine shares with none
	Dir     string // where plugins are unpacked, each in a directory named by its digest
	Token   string // of GitHub, for private repositories; may be empty
}

// Fetched is a plugin that Fetch has brought.
type Fetched struct {
	Request
	Sum    string // of its archive
	Dir    string // where it is unpacked
	From   string // the address from which it was downloaded now; empty: it was not
	Pinned bool   // the lock has its digest
}

// Fetch returns the directory of a plugin: from Dir, else from the archives that are shared, else by a download, which
// is then shared. Processes that need the same plugin wait for one of them.
func (f *Fetcher) Fetch(ctx context.Context, r Request) (Fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, longestDownload)
	defer cancel()
	d := newDownloader(f.Network, f.Token)
	r, err := choose(ctx, r, f.Lock, func(ctx context.Context, r Request) (string, error) { return f.newest(ctx, d, r) })
	if err != nil {
		return Fetched{Request: r}, err
	}
	source, err := d.source(r)
	if err != nil {
		return Fetched{Request: r}, err
	}
	origin := source.URL()
	one := fetching{
		Fetcher: f, Fetched: Fetched{Request: r}, downloader: d, origin: origin,
		key: digest(fmt.Sprintf("%s\n%s\n%s\n%s\n%s", origin, r.Kind, r.Name, r.Version, Here)),
	}
	err = one.run(ctx)
	return one.Fetched, err
}

// choose completes a request: with the version and the address of the lock, else with the newest version.
func choose(
	ctx context.Context, r Request, lock *Lock, newest func(context.Context, Request) (string, error),
) (Request, error) {
	r, err := r.Normalized()
	if err != nil {
		return r, err
	}
	if locked := lock.Find(r.Plugin); locked != nil {
		r.Version = locked.Version
		if r.URL == "" {
			r.URL = locked.URL
		}
	}
	if r.Version == "" {
		r.Version, err = newest(ctx, r)
	}
	return r, err
}

// versionAge is how long the newest version of a plugin is not asked for again: servers limit such requests, and the
// plugin should not change while an update moves to another worker.
const versionAge = 24 * time.Hour

// newest returns the newest version of a plugin, as the organization's workers have found out lately, else as its
// server says. If the server cannot tell, an older answer counts.
func (f *Fetcher) newest(ctx context.Context, d *downloader, r Request) (string, error) {
	if f.Shared == nil {
		return d.latest(ctx, r)
	}
	source, err := d.source(r)
	if err != nil {
		return "", err
	}
	key := digest(fmt.Sprintf("%s\n%s\n%s", source.URL(), r.Kind, r.Name))
	known, at, err := f.Shared.Version(ctx, key)
	if err != nil || known != "" && time.Since(at) < versionAge {
		return known, err
	}
	latest, err := d.latest(ctx, r)
	switch {
	case err == nil:
		return latest, f.Shared.SetVersion(ctx, key, latest)
	case known != "":
		return known, nil
	}
	return "", err
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// fetching is one Fetch.
type fetching struct {
	*Fetcher
	Fetched
	*downloader
	origin string
	key    string // of what is downloaded from origin; empty if the request or the lock has the digest
}

func (f *fetching) run(ctx context.Context) error {
	var err error
	if f.Sum, f.Pinned, err = expected(f.Request, f.Lock, Here); err != nil {
		return err
	}
	dir := f.Fetcher.Dir
	lock := flock.New(filepath.Join(dir, ".lock-"+f.key[:2]), flock.SetPermissions(0o600))
	if f.Sum != "" {
		f.key = ""
	}
	if found, err := f.find(ctx); found || err != nil {
		return err
	}
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if found, err := f.find(ctx); found || err != nil { // another process was faster
		return err
	}
	archive, err := os.CreateTemp(dir, ".archive-")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(archive.Close(), os.Remove(archive.Name())) }()
	if err := f.obtain(ctx, archive); err != nil {
		return err
	}
	f.Fetched.Dir = filepath.Join(dir, f.Sum)
	if err := Install(archive, f.Plugin, f.Fetched.Dir); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil // another process was faster
}

// find reports whether the expected plugin is unpacked, and marks it as used. Without an expected digest, it expects
// what was downloaded first.
func (f *fetching) find(ctx context.Context) (bool, error) {
	if f.Sum == "" && f.Shared != nil {
		var err error
		if f.Sum, err = f.Shared.Sum(ctx, f.key); err != nil {
			return false, err
		}
	}
	dir, now := filepath.Join(f.Fetcher.Dir, f.Sum), time.Now()
	if f.Sum == "" || os.Chtimes(dir, now, now) != nil {
		return false, nil
	}
	f.Fetched.Dir = dir
	return true, nil
}

// obtain writes the archive to a file, from those that are shared or from its server.
func (f *fetching) obtain(ctx context.Context, archive *os.File) error {
	if f.Sum != "" && f.Shared != nil {
		hash := sha256.New()
		found, err := f.Shared.Read(ctx, f.Sum, io.MultiWriter(archive, hash))
		if err != nil {
			return err
		}
		if found && hex.EncodeToString(hash.Sum(nil)) == f.Sum {
			return nil
		}
	}
	from := redacted(f.origin)
	sum, err := f.download(ctx, f.Request, Here, archive)
	if err != nil {
		return fmt.Errorf("it could not be downloaded from %s: %w", from, err)
	}
	if f.Sum != "" && sum != f.Sum {
		return &ChangedError{Plugin: f.Plugin, From: from, Want: f.Sum, Got: sum, Locked: f.Pinned}
	}
	f.Sum, f.From = sum, from
	if f.Shared == nil {
		return nil
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	recorded, err := f.Shared.Write(ctx, f.key, sum, archive)
	if err == nil && recorded != sum {
		err = &ChangedError{Plugin: f.Plugin, From: from, Want: recorded, Got: sum}
	}
	return err
}

// expected returns the digest that the archive of a request must have for a platform; "" if any will do. locked reports
// whether the lock has it.
func expected(r Request, lock *Lock, platform Platform) (sum string, locked bool, err error) {
	sum = r.Sums[string(platform)]
	if sum != "" && !isSum(sum) {
		return "", false, fmt.Errorf("the checksum of %s for %s is not 64 hexadecimal digits", r.Plugin, platform)
	}
	if entry := lock.Find(r.Plugin); entry != nil && entry.SHA256[platform] != "" {
		pinned := entry.SHA256[platform]
		if sum != "" && sum != pinned {
			return "", true, fmt.Errorf("%s has the digest %s in %s, and the program asks for %s; if the program is "+
				"right, run `deployctl plugin install` again", r.Plugin, pinned, LockFile, sum)
		}
		return pinned, true, nil
	}
	return sum, false, nil
}

// ChangedError is the error of an archive with another digest than the expected one.
type ChangedError struct {
	Plugin
	From      string
	Want, Got string
	Locked    bool
}

func (e *ChangedError) Error() string {
	which := "the one that was downloaded or asked for before"
	if e.Locked {
		which = "the one in " + LockFile
	}
	return fmt.Sprintf("the archive of %s at %s has changed: its SHA-256 is %s, and %s is %s; nothing was installed. If "+
		"its publisher confirms the change, run `deployctl plugin install %s %s %s --reinstall`",
		e.Plugin, e.From, e.Got, which, e.Want, e.Kind, e.Name, e.Version)
}

// Install unpacks the archive of a plugin into a directory, which appears as a whole or not at all. The error is
// fs.ErrExist if it exists.
func Install(archive *os.File, p Plugin, dir string) error {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".unpacking-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	if err := unpack(archive, temporary); err != nil {
		return fmt.Errorf("the archive of %s cannot be unpacked: %w", p, err)
	}
	if _, err := exec.LookPath(filepath.Join(temporary, p.File())); err != nil {
		if _, source := os.Stat(filepath.Join(temporary, SourceFile)); source != nil {
			return fmt.Errorf("the archive of %s has no executable %s: it is not one for %s", p, p.File(), Here)
		}
	}
	return os.Rename(temporary, dir)
}

// SourceFile is in the directory of a plugin that is source code.
const SourceFile = "PulumiPlugin.yaml"
