package identity

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxAnswer limits an answer of an issuer, in bytes. Large identity providers answer with less than 40 KB.
	maxAnswer = 256 << 10
	// An issuer is asked this often: each token with an unknown key asks for the keys, and anybody can write one.
	asksPerSecond, askBurst = 0.5, 10
	// Codes of logins are sent to it this often: anybody can begin a login, and end it with a code that is none.
	codesPerSecond, codeBurst = 10, 100
)

// fetcher asks one issuer, not too often, and reads no more than is reasonable.
type fetcher struct {
	next  http.RoundTripper
	now   func() time.Time
	limit *rate.Limiter
}

// client returns an HTTP client that asks by a fetcher, follows no redirect, and waits no longer than patience.
func client(by http.RoundTripper) *http.Client {
	return &http.Client{Transport: by, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

var errOften = errors.New("it was asked too often; try again in a few seconds")

// RoundTrip asks the issuer. Of an answer without a document, nobody is told more than its status: it may be another
// server's, which callers cannot ask.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	if !f.limit.AllowN(f.now(), 1) {
		return nil, errOften
	}
	answer, err := f.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case r.Method == http.MethodGet && answer.StatusCode != http.StatusOK:
		_ = answer.Body.Close()
		return nil, fmt.Errorf("it answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	answer.Body = &bounded{answer.Body, io.LimitReader(answer.Body, maxAnswer)}
	return answer, nil
}

// bounded is a body that ends after a size.
type bounded struct {
	io.Closer
	io.Reader
}
