package plugins

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// publisher serves the archives of the provider acme, and counts what is downloaded.
type publisher struct {
	*httptest.Server
	mu      sync.Mutex
	archive []byte
	fails   int // requests that are answered with an error first
	asked   []string
}

func newPublisher(t *testing.T, content string) *publisher {
	t.Helper()
	p := &publisher{}
	p.publish(t, content)
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// publish replaces the archive.
func (p *publisher) publish(t *testing.T, content string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.archive = archiveOf(t, content, tar.Header{Name: "pulumi-resource-acme", Mode: 0o755})
}

func (p *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.URL.Path)
	if p.fails > 0 {
		p.fails--
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/pulumi-resource-acme-v1.0.0-"+string(Here)+".tar.gz") {
		_, _ = w.Write(p.archive)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

func (p *publisher) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

func (p *publisher) sum() string {
	sum := sha256.Sum256(p.archive)
	return hex.EncodeToString(sum[:])
}

// acme asks for the provider acme, from the publisher.
func (p *publisher) acme() Request {
	return Request{Plugin: Plugin{Kind: apitype.ResourcePlugin, Name: "acme", Version: "v1.0.0"}, URL: p.URL + "/"}
}

// machine is a Fetcher with a directory of its own.
func machine(t *testing.T, shared Shared) *Fetcher {
	t.Helper()
	return &Fetcher{Network: &Network{Private: true}, Shared: shared, Dir: t.TempDir()}
}

func newBucket(t *testing.T) *statestore.Store {
	t.Helper()
	return openBucket(t, &bucket.Memory{}, time.Now)
}

func openBucket(t *testing.T, objects bucket.Objects, now func() time.Time) *statestore.Store {
	t.Helper()
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32), Now: now})
	must(t, err, store.Check(t.Context()))
	return store
}

// holds checks the executable of a plugin that was fetched, and that nothing else is in the directory.
func (f *Fetcher) holds(t *testing.T, fetched Fetched, content string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fetched.Dir, "pulumi-resource-acme"))
	if err != nil || string(text) != content {
		t.Errorf("the executable has %q: %v", text, err)
	}
	left, err := filepath.Glob(filepath.Join(f.Dir, ".[au]*"))
	if err != nil || len(left) > 0 {
		t.Errorf("it left %v: %v", left, err)
	}
}

func TestAPluginIsDownloadedOnceAndThenTakenFromTheMachineAndFromTheBucket(t *testing.T) {
	p, store := newPublisher(t, "first"), newBucket(t)
	one, two := machine(t, store.Programs.PluginArchives("shop")), machine(t, store.Programs.PluginArchives("shop"))
	p.fails = 1
	fetched, err := one.Fetch(t.Context(), p.acme())
	must(t, err)
	if fetched.From != p.URL || fetched.Sum != p.sum() || fetched.Version != "1.0.0" || p.requests() != 2 {
		t.Errorf("it was fetched from %q with %d requests: %+v", fetched.From, p.requests(), fetched)
	}
	one.holds(t, fetched, "first")
	p.publish(t, "another")
	p.Close()
	for _, f := range []*Fetcher{one, two} {
		again, err := f.Fetch(t.Context(), p.acme())
		must(t, err)
		if again.From != "" {
			t.Errorf("it was downloaded again from %s", again.From)
		}
		f.holds(t, again, "first")
	}
	stranger := machine(t, store.Programs.PluginArchives("other"))
	stranger.Network.silence = time.Millisecond // between attempts
	if got, err := stranger.Fetch(t.Context(), p.acme()); err == nil {
		t.Errorf("another organization gets %+v", got)
	}
}

func TestThoseWhoNeedAPluginAtTheSameTimeDownloadItOnce(t *testing.T) {
	p := newPublisher(t, "first")
	f := machine(t, newBucket(t).Programs.PluginArchives("shop"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := f.Fetch(t.Context(), p.acme()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := p.requests(); n != 1 {
		t.Errorf("there were %d requests", n)
	}
}

func TestAnArchiveWithAnotherDigestIsRefused(t *testing.T) {
	wrong := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		lock *Lock
		sums map[string]string
		says string
	}{
		"than the lock has": {lock: &Lock{Plugins: []Locked{{Kind: "resource", Name: "acme", Version: "1.0.0",
			SHA256: map[Platform]string{Here: wrong}}}}, says: "the one in deployctl.lock is " + wrong},
		"than the program asks for": {sums: map[string]string{string(Here): wrong}, says: wrong},
	} {
		t.Run(name, func(t *testing.T) {
			p, store := newPublisher(t, "first"), newBucket(t)
			f := machine(t, store.Programs.PluginArchives("shop"))
			if _, err := f.Fetch(t.Context(), p.acme()); err != nil { // without knowing better
				t.Fatal(err)
			}
			f.Lock = c.lock
			r := p.acme()
			r.Sums = c.sums
			_, err := f.Fetch(t.Context(), r)
			var changed *ChangedError
			if !errors.As(err, &changed) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "deployctl plugin install resource acme 1.0.0 --reinstall") {
				t.Errorf("%v", err)
			}
			if found, _ := os.ReadDir(filepath.Join(f.Dir, wrong)); found != nil {
				t.Error("it was installed")
			}
		})
	}
}

func TestWhatAnAddressServedFirstIsWhatItMustServe(t *testing.T) {
	p, objects := newPublisher(t, "first"), &bucket.Memory{}
	now := openBucket(t, objects, time.Now).Programs.PluginArchives("shop")
	if _, err := machine(t, now).Fetch(t.Context(), p.acme()); err != nil {
		t.Fatal(err)
	}
	afterAYear := openBucket(t, objects, func() time.Time { return time.Now().AddDate(1, 0, 0) })
	later := afterAYear.Programs.PluginArchives("shop")
	must(t, later.Collect(t.Context(), 24*time.Hour))
	p.publish(t, "second")
	if got, err := machine(t, later).Fetch(t.Context(), p.acme()); err == nil {
		t.Errorf("it was fetched: %+v", got)
	}
	p.publish(t, "first")
	if _, err := machine(t, later).Fetch(t.Context(), p.acme()); err != nil {
		t.Errorf("what was collected is not downloaded again: %v", err)
	}
}

func TestALockChoosesTheVersionAndTheAddress(t *testing.T) {
	p := newPublisher(t, "first")
	f := machine(t, nil)
	f.Lock = &Lock{Plugins: []Locked{
		{Kind: "resource", Name: "acme", Version: "0.9.0", URL: "https://old.example"},
		{Kind: "resource", Name: "acme", Version: "1.0.0", URL: p.URL, SHA256: map[Platform]string{Here: p.sum()}},
		{Kind: "language", Name: "acme", Version: "2.0.0"},
	}}
	fetched, err := f.Fetch(t.Context(), Request{Plugin: Plugin{Kind: "resource", Name: "acme"}})
	must(t, err)
	if !fetched.Pinned || fetched.Version != "1.0.0" {
		t.Errorf("%+v", fetched)
	}
}

func TestAServerThatMisbehavesIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func(http.ResponseWriter)
		silence bool // it says nothing any more
		says    string
	}{
		"it has no such file": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, false, "answers 404"},
		"it announces too much": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "9999999999")
		}, false, "more than 1024 MiB"},
		"it stops": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
		}, true, "stopped in the middle|timeout"},
		"it never answers": {func(http.ResponseWriter) {}, true, "timeout"},
		"it sends no archive": {func(w http.ResponseWriter) { _, _ = w.Write([]byte("hello")) }, false,
			"no gzipped archive"},
		"it sends another plugin": {func(w http.ResponseWriter) {
			_, _ = w.Write(archiveOf(t, "x", tar.Header{Name: "pulumi-resource-other", Mode: 0o755}))
		}, false, "no executable pulumi-resource-acme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.answer(w)
				if c.silence {
					select {
					case <-r.Context().Done():
					case <-ended:
					}
				}
			}))
			defer server.Close()
			defer close(ended)
			f := machine(t, nil)
			says := regexp.MustCompile(c.says)
			if c.silence {
				f.Network.silence = 50 * time.Millisecond
			}
			p := &publisher{Server: server}
			if _, err := f.Fetch(t.Context(), p.acme()); err == nil || !says.MatchString(err.Error()) {
				t.Errorf("%v", err)
			}
			if left, _ := os.ReadDir(f.Dir); len(left) > 1 { // the lock
				t.Errorf("it leaves %v", left)
			}
		})
	}
}

func TestTheNewestVersionIsAskedForOnceADay(t *testing.T) {
	objects, now, asked := &bucket.Memory{}, time.Now(), 0
	newest := func(at time.Time, release string) string {
		d := newDownloader(&Network{}, "")
		d.client.Transport = responder(func(*http.Request) *http.Response {
			asked++
			code := http.StatusOK
			if release == "" {
				code = http.StatusForbidden
			}
			return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(`{"tag_name": "` + release + `"}`))}
		})
		f := machine(t, openBucket(t, objects, func() time.Time { return at }).Programs.PluginArchives("shop"))
		version, err := f.newest(t.Context(), d, Request{Plugin: Plugin{Kind: apitype.ResourcePlugin, Name: "acme"}})
		if err != nil {
			return "none"
		}
		return version
	}
	for i, c := range []struct {
		at            time.Time
		release, want string
		asked         int
	}{
		{now, "", "none", 1}, {now.Add(-25 * time.Hour), "v1.0.0", "1.0.0", 2}, {now, "", "1.0.0", 3},
		{now, "v1.1.0", "1.1.0", 4}, {now, "v1.2.0", "1.1.0", 4},
	} {
		if got := newest(c.at, c.release); got != c.want || asked != c.asked {
			t.Errorf("%d: %s after %d requests, want %s after %d", i, got, asked, c.want, c.asked)
		}
	}
}

// responder answers requests without a network.
type responder func(*http.Request) *http.Response

func (f responder) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := f(r)
	answer.Request = r
	return answer, nil
}

func TestOnlyGitHubGetsTheTokenOfTheUserAndNobodyThatOfTheWorker(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "the-worker's")
	t.Setenv("GITLAB_TOKEN", "the-worker's")
	got := map[string][]string{}
	d := newDownloader(&Network{}, "the-user's")
	d.client.Transport = responder(func(r *http.Request) *http.Response {
		got[r.URL.Host] = append(got[r.URL.Host], r.Header.Get("Authorization"))
		code := http.StatusNotFound
		if r.Header.Get("Authorization") != "" {
			code = http.StatusUnauthorized
		}
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(""))}
	})
	file, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	must(t, err)
	defer func() { _ = file.Close() }()
	for _, address := range []string{"", "github://api.github.com/acme/pulumi-acme", "github://git.example/acme",
		"gitlab://gitlab.example/1234", "https://releases.example"} {
		r := Request{Plugin: Plugin{Kind: apitype.ResourcePlugin, Name: "acme", Version: "1.0.0"}, URL: address}
		if _, err := d.download(t.Context(), r, Here, file); err == nil {
			t.Errorf("%s: it was downloaded", address)
		}
	}
	for _, host := range []string{"github.com", "get.pulumi.com", "git.example", "gitlab.example", "releases.example"} {
		if len(got[host]) != 1 || got[host][0] != "" {
			t.Errorf("%s got %q", host, got[host])
		}
	}
	if token := got["api.github.com"]; len(token) != 4 || token[0] != "Bearer the-user's" || token[1] != "" {
		t.Errorf("GitHub got %q", token)
	}
}

func TestTheErrorAboutAServerHasNoCredentials(t *testing.T) {
	p := newPublisher(t, "first")
	r := p.acme()
	r.Version, r.URL = "2.0.0", strings.Replace(p.URL, "http://", "http://ann:hush@", 1)+"/dir?key=hush"
	_, err := machine(t, nil).Fetch(t.Context(), r)
	if err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "/dir") {
		t.Errorf("%v", err)
	}
	p.Close()
	f := machine(t, nil)
	f.Network.silence = time.Millisecond // between attempts
	if _, err = f.Fetch(t.Context(), r); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
}
