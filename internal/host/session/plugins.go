package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
)

// pluginSource brings the plugins of an update that are not installed on this worker.
type pluginSource struct {
	fetcher plugins.Fetcher
	session *Session

	mu    sync.Mutex
	pins  []io.Closer     // of entries of the bundle cache
	noted map[string]bool // plugins whose download was reported
}

// openPlugins returns the function that fetches plugins for a session; nil if nothing may be downloaded. The lock is
// that of the bundle.
func (a *Sessions) openPlugins(s *Session, env []string) (
	func(context.Context, plugins.Request) (string, error), error,
) {
	if a.Plugins == nil {
		return nil, nil
	}
	lock, err := s.pluginLock()
	if err != nil {
		return nil, err
	}
	token, _ := process.Variable(env, "GITHUB_TOKEN")
	s.plugins = &pluginSource{session: s, noted: map[string]bool{}, fetcher: plugins.Fetcher{
		Network: a.Plugins, Lock: lock, Shared: a.Store.Programs.PluginArchives(s.update.Organization),
		Dir: s.box.Plugins(), Token: token,
	}}
	return s.plugins.fetch, nil
}

// pluginLock returns the lock file of the project; nil if it has none.
func (s *Session) pluginLock() (*plugins.Lock, error) {
	text, err := s.box.ReadFile(filepath.Join(s.dir, plugins.LockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var lock *plugins.Lock
	if err == nil {
		lock, err = plugins.ParseLock(text)
	}
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	return lock, nil
}

// fetch returns the directory of a plugin, which stays until the session is closed.
func (p *pluginSource) fetch(ctx context.Context, r plugins.Request) (string, error) {
	defer p.session.phases.begin("downloading " + r.Plugin.String())()
	fetched, err := p.fetcher.Fetch(ctx, r)
	if err != nil {
		return "", err
	}
	pin, err := p.session.bundles.Pin(ctx, fetched.Dir)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	p.pins = append(p.pins, pin)
	first := !p.noted[fetched.Sum]
	p.noted[fetched.Sum] = true
	p.mu.Unlock()
	if first && fetched.From != "" {
		p.report(fetched)
	}
	return fetched.Dir, nil
}

// report prints what was downloaded, with a warning if the project has a lock that does not have it.
func (p *pluginSource) report(f plugins.Fetched) {
	m := pluginhost.Message{Severity: diag.Info, Text: fmt.Sprintf("Downloaded %s from %s (SHA-256 %s).", f.Plugin, f.From,
		f.Sum)}
	if p.fetcher.Lock != nil && !f.Pinned {
		m.Severity = diag.Warning
		m.Text += fmt.Sprintf(" %s does not have it for %s: run `deployctl plugin install %s %s %s --platform %s`.",
			plugins.LockFile, plugins.Here, f.Kind, f.Name, f.Version, plugins.Here)
	}
	p.session.print(m)
}

// close lets the plugins go. A nil source has none.
func (p *pluginSource) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pin := range p.pins {
		_ = pin.Close()
	}
	p.pins = nil
}
