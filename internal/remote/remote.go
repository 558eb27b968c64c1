// Package remote fetches what programs name by URL: assets and archives. A program could otherwise have the worker ask
// servers that only the worker may ask, and fill its memory and its disk.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/httputil"
	"golang.org/x/sync/semaphore"

	"github.com/deployctl/deployctl/internal/outbound"
)

const (
	// MaxBytes is the most that is fetched from a URL.
	MaxBytes = 64 << 20
	// places is how much is fetched at a time, and share how much of it for one organization. Each takes little memory,
	// and at most MaxBytes of the disk.
	places, share = 32, 8
	// answerTimeout bounds the time until a server begins to answer, and fetchTimeout the whole fetch.
	answerTimeout, fetchTimeout = time.Minute, 10 * time.Minute
)

// Fetcher fetches for all programs of a worker. A nil Fetcher fetches nothing.
type Fetcher struct {
	guard  *outbound.Guard
	client *http.Client
	places *semaphore.Weighted

	mu     sync.Mutex
	shares map[string]*semaphore.Weighted // by organization; there are as many as have updates on the worker
}

// New returns a Fetcher that asks only servers at public addresses, and those of the setting assets.private-hosts.
// Private allows all servers.
func New(hosts []string, private bool) *Fetcher {
	guard := &outbound.Guard{What: "assets are fetched", Setting: "assets.private-hosts", Private: private, Hosts: hosts,
		Plaintext: outbound.AnyPlaintext, Patience: answerTimeout}
	return &Fetcher{guard: guard, client: guard.Client(), places: semaphore.NewWeighted(places),
		shares: map[string]*semaphore.Weighted{}}
}

// Body is what a URL leads to, as it arrives; close it. Reading more than MaxBytes fails.
type Body struct {
	limited io.Reader
	closing func()
}

// Open asks for what is at a URL, for a program of an organization. It waits until there is a place for it.
func (f *Fetcher) Open(ctx context.Context, organization, address string) (*Body, error) {
	if f == nil {
		return nil, errors.New("nothing is fetched here: have the program download it")
	}
	at, err := f.guard.Parse(address)
	if err != nil {
		return nil, err
	}
	leave, err := f.enter(ctx, organization)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	body, err := f.ask(ctx, at)
	if err != nil {
		cancel()
		leave()
		return nil, err
	}
	return &Body{&limited{body, MaxBytes}, sync.OnceFunc(func() { _ = body.Close(); cancel(); leave() })}, nil
}

// enter takes a place, which leave gives back.
func (f *Fetcher) enter(ctx context.Context, organization string) (leave func(), err error) {
	f.mu.Lock()
	own := f.shares[organization]
	if own == nil {
		own = semaphore.NewWeighted(share)
		f.shares[organization] = own
	}
	f.mu.Unlock()
	if err := own.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if err := f.places.Acquire(ctx, 1); err != nil {
		own.Release(1)
		return nil, err
	}
	return func() { f.places.Release(1); own.Release(1) }, nil
}

func (f *Fetcher) ask(ctx context.Context, at *url.URL) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := httputil.DoWithRetry(request, f.client)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s answers %s", outbound.Shown(at), answer.Status)
	}
	return answer.Body, nil
}

// Read reads what has arrived.
func (b *Body) Read(to []byte) (int, error) { return b.limited.Read(to) }

// Close ends the fetch, and gives its place to another.
func (b *Body) Close() error {
	b.closing()
	return nil
}

// limited fails when more than left is read.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(to []byte) (int, error) {
	if int64(len(to)) > l.left+1 {
		to = to[:l.left+1]
	}
	n, err := l.from.Read(to)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("what the URL leads to is larger than %d MiB: have the program download it", MaxBytes>>20)
	}
	return n, err
}

// File is what was at a URL, in a file that has no name; close it.
type File struct {
	*os.File
	Size int64
	body *Body // keeps its place as long as there is the file
}

// Keep reads a body to its end. It closes the body on failure, and File.Close does so otherwise.
func (b *Body) Keep() (kept *File, err error) {
	file, err := os.CreateTemp("", "deployctl-fetched-")
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	// It is gone when it is closed; Windows refuses, and leaves it to the cleaning of its temporary directory.
	_ = os.Remove(file.Name())
	kept = &File{file, 0, b}
	if kept.Size, err = io.Copy(file, b); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = kept.Close()
		return nil, err
	}
	return kept, nil
}

// Close removes the file.
func (f *File) Close() error {
	err := f.File.Close()
	return errors.Join(err, f.body.Close())
}
