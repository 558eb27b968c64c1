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
)

// fetcher asks one issuer, not too often, and reads no more than is reasonable.
type fetcher struct {
	next  http.RoundTripper
	now   func() time.Time
	limit *rate.Limiter
}

func newFetcher(next http.RoundTripper, now func() time.Time) *fetcher {
	return &fetcher{next: next, now: now, limit: rate.NewLimiter(asksPerSecond, askBurst)}
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
