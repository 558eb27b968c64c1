// Package remote fetches what programs name by URL: assets and archives. It is used by processes in the sandbox of an
// update, which reach what its program reaches; it bounds how much they fetch, and for how long. One of them fetches
// while the packages of the binary are initialized; see package launcher about the imports.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	// MaxBytes is the most that is fetched from a URL.
	MaxBytes = 64 << 20
	// most is how much a process fetches at a time. Each takes little memory, and at most MaxBytes of the disk.
	most = 8
	// connectTimeout bounds the TLS handshake with a server, answerTimeout the time until it begins to answer, and
	// fetchTimeout the whole fetch.
	connectTimeout, answerTimeout, fetchTimeout = 10 * time.Second, time.Minute, 10 * time.Minute
	// attempts is how often a server is asked that cannot be reached, is busy or fails. The pauses between them grow from
	// the first one, and are what a server asks for, up to the longest.
	attempts, firstPause, longestPause = 5, 100 * time.Millisecond, 30 * time.Second
)

// places has a value for each fetch.
var places = make(chan struct{}, most)

// client asks whatever server a URL leads to: the process reaches no more than the program itself.
var client = &http.Client{Transport: &http.Transport{
	Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableKeepAlives: true,
	TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: answerTimeout,
}}

// Body is what a URL leads to, as it arrives; close it. Reading more than MaxBytes fails.
type Body struct {
	limited io.Reader
	closing func()
}

// Open asks for what is at a URL. It waits until there is a place for it.
func Open(ctx context.Context, address string) (*Body, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	body, err := ask(ctx, at)
	if err != nil {
		cancel()
		<-places
		return nil, err
	}
	return &Body{&limited{body, MaxBytes}, sync.OnceFunc(func() { _ = body.Close(); cancel(); <-places })}, nil
}

func ask(ctx context.Context, at *url.URL) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := retried(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("the server %s answers %s for %s", at.Host, answer.Status, at.EscapedPath())
	}
	return answer.Body, nil
}

// retried asks until a server answers for good.
func retried(request *http.Request) (*http.Response, error) {
	for attempt, pause := 1, firstPause; ; attempt, pause = attempt+1, 2*pause {
		answer, err := client.Do(request)
		if attempt == attempts || err == nil && answer.StatusCode < http.StatusInternalServerError &&
			answer.StatusCode != http.StatusTooManyRequests {
			return answer, err
		}
		wait := pause
		if err == nil {
			_ = answer.Body.Close()
			if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
				wait = min(max(wait, time.Duration(seconds)*time.Second), longestPause)
			}
		}
		select {
		case <-time.After(wait):
		case <-request.Context().Done():
			return nil, context.Cause(request.Context())
		}
	}
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
	body io.Closer // keeps its place as long as there is the file
}

// Keep reads a body to its end. It closes the body on failure, and File.Close does so otherwise.
func (b *Body) Keep() (*File, error) { return Keep(b) }

// Keep does so with a body from elsewhere.
func Keep(b io.ReadCloser) (kept *File, err error) {
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
