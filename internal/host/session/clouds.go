package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/internal/values/workload"
)

// unwrittenRetry is how long after a failure the tokens of an update are made again.
const unwrittenRetry = 10 * time.Second

// workloadTokens are the files by which the processes of one update say to clouds what it is. They are made again for
// as long as the session lives; another worker that goes on with the update makes its own.
type workloadTokens struct {
	session *Session
	issuer  string
	keys    func(context.Context) (workload.Keys, error)
	warn    func(text string) // in the log of the update
	dir     *sandbox.Handed

	mu     sync.Mutex
	issued []issued

	stop    context.CancelFunc // nil before keep
	stopped chan struct{}
}

// issued is a token that may still count.
type issued struct {
	text    string
	expires time.Time
}

// openTokens writes the tokens of an update for the clouds of its profile. Without clouds there are none.
func (a *Sessions) openTokens(ctx context.Context, s *Session) error {
	p := s.request.Profile
	if p == nil || p.Clouds.Empty() {
		return nil
	}
	t := &workloadTokens{session: s, issuer: a.Store.Access.Issuer.Address(), keys: a.Store.Access.Issuer.Keys,
		warn:    func(text string) { s.log.Put(warning(text)) },
		stopped: make(chan struct{})}
	if t.issuer == "" {
		return deployments.Errorf(deployments.CodeUnavailable, "the profile %s has clouds, and this worker does not know "+
			"under which address they reach the service: give it the setting issuer, as serve has it", p.Name)
	}
	s.tokens = t // which are secrets from the first one on; the session closes them
	var err error
	if t.dir, err = s.box.Hand(); err == nil {
		err = t.write(ctx)
	}
	return bundlecache.Unavailable(err)
}

// keep keeps the tokens fresh from now on, until they are closed.
func (t *workloadTokens) keep(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(t.stopped)
		if err := panics.Do("making tokens for clouds", func() error { t.renew(ctx); return nil }); err != nil {
			t.warn(err.Error())
		}
	}()
}

// path returns where a file of the directory is.
func (t *workloadTokens) path(name string) string { return filepath.Join(t.dir.Path, name) }

// write makes the tokens, and writes them, with what names the file to Google's libraries. What is printed from then on
// does not have them.
func (t *workloadTokens) write(ctx context.Context) error {
	now := time.Now()
	keys, err := t.keys(ctx)
	if err != nil {
		return err
	}
	key, err := keys.Signing(now)
	if err != nil {
		return err
	}
	s, made := t.session, map[string]string{}
	for file, audience := range workload.Files(s.request.Profile.Clouds) {
		claims := workload.Of(t.issuer, s.update, s.request, s.request.Profile.Name, audience)
		if made[file], err = workload.Sign(key, claims, rand.Text(), now); err != nil {
			return err
		}
	}
	t.hide(made, now)
	for file, text := range made {
		if err := t.dir.Write(file, []byte(text)); err != nil {
			return err
		}
	}
	g := s.request.Profile.Clouds.Google
	if g == nil {
		return nil
	}
	text, err := workload.GoogleCredentials(*g, t.path(deployments.GoogleTokenFile))
	if err != nil {
		return err
	}
	return t.dir.Write(deployments.GoogleFile, text)
}

// hide notes tokens among the secrets of the session, until they do not count any more.
func (t *workloadTokens) hide(made map[string]string, now time.Time) {
	t.mu.Lock()
	t.issued = slices.DeleteFunc(t.issued, func(i issued) bool { return now.After(i.expires) })
	for _, text := range made {
		t.issued = append(t.issued, issued{text, now.Add(workload.Life)})
	}
	t.mu.Unlock()
	t.session.hideSecrets()
}

// texts returns what must not appear in output: tokens, and their signatures, without which they are worth nothing.
func (t *workloadTokens) texts() (texts []string) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.issued {
		texts = append(texts, i.text, i.text[strings.LastIndexByte(i.text, '.')+1:])
	}
	return texts
}

// renew writes tokens before the last ones are too old, until ctx ends. While it cannot, the last ones count for long;
// the update is told once, halfway.
func (t *workloadTokens) renew(ctx context.Context) {
	wait, written, told := workload.Renewal, time.Now(), false
	for {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		err := t.write(ctx)
		if err == nil {
			wait, written, told = workload.Renewal, time.Now(), false
			continue
		}
		wait = unwrittenRetry
		if !told && time.Since(written) > workload.Life/2 {
			told = true
			t.warn(fmt.Sprintf("No token for clouds could be made since %s: %v. Clouds refuse the last one from %s on.",
				written.UTC().Format(time.TimeOnly), err, written.Add(workload.Life).UTC().Format(time.TimeOnly+" UTC")))
		}
	}
}

// close removes the files. A nil workloadTokens has none.
func (t *workloadTokens) close() error {
	if t == nil {
		return nil
	}
	if t.stop != nil {
		t.stop()
		<-t.stopped
	}
	return t.dir.Close()
}

// environment returns the variables of the profile of the update, after those of the user's shell, without what would
// count in the place of its clouds.
func (s *Session) environment() []string {
	p := s.request.Profile
	if p == nil {
		return s.request.Environment
	}
	env := slices.Clone(s.request.Environment)
	env = slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return p.Clouds.Withheld(name)
	})
	env = append(env, p.Environment()...)
	if s.tokens == nil {
		return env
	}
	return append(env, p.Clouds.Environment(s.tokens.dir.Path, workload.Session(s.update))...)
}

// hideSecrets has the log, and what finds secrets in values, know the secrets of the session as they are now.
func (s *Session) hideSecrets() {
	s.hidden.Store(redaction.New(s.profileTexts()))
	if s.log != nil {
		s.log.Hide(redaction.New(s.secretTexts()))
	}
}
