package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/gofrs/flock"
)

// Installer installs plugins for the user of this machine, and pins them in the lock of a project.
type Installer struct {
	Network   *Network // nil: nothing may be downloaded
	Lock      *Lock    // of the project, which Install changes; nil: there is none
	Dir       string   // of installed plugins, as the stock CLI has it
	Token     string   // of GitHub; may be empty
	Reinstall bool     // also what is installed, and with another digest than the lock has
	// Platforms are those for which a plugin is pinned beside Here.
	Platforms []Platform
}

// Install installs a plugin, unless it is installed and pinned. It returns the request with the version that was
// chosen, and whether anything was installed.
func (i *Installer) Install(ctx context.Context, r Request) (Request, bool, error) {
	if i.Network == nil {
		return r, false, errors.New("downloads are switched off by the setting plugins.download: install from a file " +
			"with --file")
	}
	ctx, cancel := context.WithTimeout(ctx, longestDownload)
	defer cancel()
	d := newDownloader(i.Network, i.Token)
	r, err := choose(ctx, r, i.Lock, d.latest)
	if err != nil {
		return r, false, err
	}
	if err := os.MkdirAll(i.Dir, 0o755); err != nil {
		return r, false, err
	}
	dir := filepath.Join(i.Dir, r.Plugin.Dir())
	lock := flock.New(dir+".lock", flock.SetPermissions(0o600)) // the stock CLI locks the same file
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return r, false, err
	}
	defer func() { _ = lock.Close() }()
	installed := false
	for _, platform := range append([]Platform{Here}, i.Platforms...) {
		if !slices.Contains(platforms, platform) {
			return r, installed, fmt.Errorf("%q is not a platform of plugins: use one of %v", platform, platforms)
		}
		if i.settled(r, platform, dir) {
			continue
		}
		if err := i.pin(ctx, d, r, platform); err != nil {
			return r, installed, err
		}
		installed = installed || platform == Here
	}
	return r, installed, nil
}

// settled reports whether nothing is to be done for a platform.
func (i *Installer) settled(r Request, platform Platform, dir string) bool {
	if i.Reinstall {
		return false
	}
	if platform == Here {
		if _, err := os.Stat(dir); err != nil {
			return false
		}
	}
	locked := i.Lock.Find(r.Plugin)
	return i.Lock == nil || locked != nil && locked.SHA256[platform] != ""
}

// pin downloads the archive for a platform and pins it. That of this platform is installed.
func (i *Installer) pin(ctx context.Context, d *downloader, r Request, platform Platform) error {
	archive, err := os.CreateTemp(i.Dir, ".archive-")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(archive.Close(), os.Remove(archive.Name())) }()
	source, err := d.source(r)
	if err != nil {
		return err
	}
	from := redacted(source.URL())
	sum, err := d.download(ctx, r, platform, archive)
	if err != nil {
		return fmt.Errorf("%s for %s could not be downloaded from %s: %w", r.Plugin, platform, from, err)
	}
	lock := i.Lock
	if i.Reinstall {
		lock = nil
	}
	want, locked, err := expected(r, lock, platform)
	if err == nil && want != "" && want != sum {
		err = &ChangedError{Plugin: r.Plugin, From: from, Want: want, Got: sum, Locked: locked}
	}
	if err == nil && platform == Here {
		err = i.place(archive, r.Plugin)
	}
	if err == nil && i.Lock != nil {
		i.Lock.Pin(r, platform, sum)
	}
	return err
}

// place unpacks an archive in the place of an installed plugin.
func (i *Installer) place(archive *os.File, p Plugin) error {
	dir := filepath.Join(i.Dir, p.Dir())
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := Install(archive, p, dir); err != nil {
		return err
	}
	_ = os.Remove(dir + ".partial") // that the stock CLI left when it was interrupted
	return nil
}

// InstallFile installs a plugin from a file on this machine: the archive of a release, or the executable alone.
func (i *Installer) InstallFile(p Plugin, path string) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(i.Dir, 0o755); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	begin := make([]byte, 2)
	if _, err := io.ReadFull(file, begin); err == nil && begin[0] == 0x1f && begin[1] == 0x8b { // gzip
		return i.place(file, p)
	}
	return i.copyExecutable(p, file)
}

// copyExecutable installs a plugin that is one file.
func (i *Installer) copyExecutable(p Plugin, from *os.File) error {
	dir := filepath.Join(i.Dir, p.Dir())
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(i.Dir, ".unpacking-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	name := p.File()
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	to, err := os.OpenFile(filepath.Join(temporary, name), os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	err = errors.Join(err, to.Sync(), to.Close(), os.Chmod(temporary, 0o755), os.RemoveAll(dir))
	if err != nil {
		return err
	}
	return os.Rename(temporary, dir)
}
