package identity

import (
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxAnswer limits an answer of an issuer.
	maxAnswer = 1 << 20
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

// client returns an HTTP client that asks with a fetcher, follows no redirect, and waits no longer than patience.
func (f *fetcher) client() *http.Client {
	return &http.Client{Transport: f, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

var errOften = errors.New("it was asked too often; try again in a few seconds")

// RoundTrip asks the issuer.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	if !f.limit.AllowN(f.now(), 1) {
		return nil, errOften
	}
	answer, err := f.next.RoundTrip(r)
	if err == nil {
		answer.Body = &bounded{answer.Body, io.LimitReader(answer.Body, maxAnswer)}
	}
	return answer, err
}

// bounded is a body that ends after a size.
type bounded struct {
	io.Closer
	io.Reader
}
