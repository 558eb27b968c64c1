package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/blang/semver"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

const (
	// longestDownload bounds the time of one download, with its repetitions.
	longestDownload = 15 * time.Minute
	// maxArchive bounds the size of an archive; the largest providers have a quarter of it.
	maxArchive = 1 << 30
	// maxAnswer bounds other answers, such as the list of a release's files.
	maxAnswer = 16 << 20
	// attempts is how often a server is asked that does not answer; firstPause is the pause after the first time.
	attempts   = 3
	firstPause = 500 * time.Millisecond
)

// githubAPI is the only server that gets the user's GitHub token.
const githubAPI = "api.github.com"

// downloader downloads from the servers of a network.
type downloader struct {
	network *Network
	client  *http.Client
	token   string // for GitHub; may be empty
}

func newDownloader(n *Network, token string) *downloader {
	return &downloader{network: n, client: n.guard().Client(), token: token}
}

// source returns where the archives of a plugin are. The SDK knows the addresses of each kind of source; the requests
// are made by get.
func (d *downloader) source(r Request) (workspace.PluginSource, error) {
	spec := workspace.PluginDescriptor{Name: r.Name, Kind: r.Kind, PluginDownloadURL: r.URL}
	if d.network.Mirror != "" {
		spec.PluginDownloadURL = d.network.Mirror
	}
	if spec.PluginDownloadURL != "" {
		u, err := url.Parse(spec.PluginDownloadURL)
		if err != nil {
			return nil, fmt.Errorf("the download address of %s is not a URL", r.Plugin)
		}
		switch u.Scheme {
		case "github", "gitlab":
		case "https", "http":
			if err := d.network.allows(u); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("the download address of %s begins with %s:, and plugins are downloaded from "+
				"https://, github:// and gitlab:// addresses", r.Plugin, u.Scheme)
		}
	}
	return spec.GetSource()
}

// latest returns the newest version of a plugin that its source has released.
func (d *downloader) latest(ctx context.Context, r Request) (string, error) {
	source, err := d.source(r)
	if err != nil {
		return "", err
	}
	version, err := source.GetLatestVersion(ctx, d.get)
	switch {
	case errors.Is(err, workspace.ErrGetLatestVersionNotSupported):
		return "", fmt.Errorf("no version of %s was asked for, and its server cannot tell the newest: name a version",
			r.Plugin)
	case err != nil:
		return "", fmt.Errorf("no version of %s was asked for, and its newest release cannot be found: %w", r.Plugin, err)
	}
	return version.String(), nil
}

// download writes an archive to a file, and returns its digest. It tries again if the server does not answer.
func (d *downloader) download(ctx context.Context, r Request, platform Platform, to *os.File) (sum string, err error) {
	source, err := d.source(r)
	if err != nil {
		return "", err
	}
	version, err := semver.Parse(r.Version)
	if err != nil {
		return "", err
	}
	system, arch := platform.split()
	for attempt, pause := 1, min(firstPause, d.network.patience()); ; attempt, pause = attempt+1, 4*pause {
		sum, err = write(to, func() (io.ReadCloser, error) {
			body, _, err := source.Download(ctx, version, system, arch, d.get)
			return body, err
		})
		if err == nil || attempt == attempts || !mayPass(err) {
			return sum, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// write writes what open returns to the beginning of a file, and returns its digest.
func write(to *os.File, open func() (io.ReadCloser, error)) (string, error) {
	if _, err := to.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if err := to.Truncate(0); err != nil {
		return "", err
	}
	body, err := open()
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, hash), body); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// statusError is the answer of a server that is not a success.
type statusError struct {
	code int
	url  string
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%s answers %d %s", e.url, e.code, http.StatusText(e.code))
	switch e.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += "; for a private repository, or when its limit of requests is reached, set GITHUB_TOKEN"
	}
	return text
}

// mayPass reports whether another attempt may succeed.
func mayPass(err error) bool {
	var answer *statusError
	var refusal *outbound.RefusedError
	var tooLarge *sizeError
	switch {
	case errors.As(err, &answer):
		return answer.code >= 500 || answer.code == http.StatusTooManyRequests
	case errors.As(err, &refusal), errors.As(err, &tooLarge), unreachable(err):
		return false
	}
	var failed *url.Error
	return errors.As(err, &failed) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errSilent)
}

// unreachable reports whether a server could not be connected to in time: another attempt would take as long.
func unreachable(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" && dial.Timeout()
}

// get makes a request of a source. It never sends credentials of this process, which the SDK adds to requests: the
// user's own token goes to GitHub alone, and is left out after GitHub has rejected it.
func (d *downloader) get(r *http.Request) (io.ReadCloser, int64, error) {
	r.Header.Del("Authorization")
	if d.token != "" && r.URL.Scheme == "https" && r.URL.Host == githubAPI {
		r.Header.Set("Authorization", "Bearer "+d.token)
		body, size, err := d.send(r)
		var answer *statusError
		if !errors.As(err, &answer) ||
			answer.code != http.StatusUnauthorized && answer.code != http.StatusForbidden {
			return body, size, err
		}
		r.Header.Del("Authorization")
	}
	return d.send(r)
}

func (d *downloader) send(r *http.Request) (io.ReadCloser, int64, error) {
	if err := d.network.allows(r.URL); err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	answer, err := d.client.Do(r.WithContext(ctx)) //nolint:bodyclose // the caller closes it
	if err != nil {
		cancel(nil)
		var failed *url.Error
		if errors.As(err, &failed) {
			failed.URL = outbound.Shown(r.URL) // it may have credentials
		}
		return nil, 0, err
	}
	limit := int64(maxArchive)
	if r.Header.Get("Accept") == "application/json" {
		limit = maxAnswer
	}
	body := &boundedBody{ReadCloser: answer.Body, left: limit, limit: limit, ctx: ctx, cancel: cancel,
		patience: d.network.patience()}
	body.silence = time.AfterFunc(body.patience, func() { cancel(errSilent) })
	switch {
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		_ = body.Close()
		return nil, 0, &statusError{answer.StatusCode, outbound.Shown(answer.Request.URL)}
	case answer.ContentLength > limit:
		_ = body.Close()
		return nil, 0, &sizeError{limit}
	}
	return body, answer.ContentLength, nil
}

// errSilent is the error of a server that stops in the middle of its answer.
var errSilent = errors.New("the server stopped in the middle of its answer")

// sizeError is the error of an answer that is too large.
type sizeError struct{ limit int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("the server sends more than %d MiB, which no plugin has", e.limit>>20)
}

// boundedBody is the body of an answer with at most limit bytes and no long pause.
type boundedBody struct {
	io.ReadCloser
	left, limit int64
	patience    time.Duration // with a pause of the server
	silence     *time.Timer
	ctx         context.Context // of the request
	cancel      context.CancelCauseFunc
}

// Read reads from the body.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.silence.Reset(b.patience)
	if b.left -= int64(n); b.left < 0 {
		return 0, &sizeError{b.limit}
	}
	if err != nil && errors.Is(context.Cause(b.ctx), errSilent) {
		err = errSilent
	}
	return n, err
}

// Close ends the request.
func (b *boundedBody) Close() error {
	b.silence.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
