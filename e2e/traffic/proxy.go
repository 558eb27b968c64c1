// Package traffic is what lies between a service and its servers: a proxy in front of an S3 server that keeps each
// request, and tells which of them had to wait for one another, and delays, as if the servers were far away.
package traffic

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Proxy is a proxy in front of an S3 server.
type Proxy struct {
	*httptest.Server

	delay time.Duration // of each request

	mu       sync.Mutex
	requests []*Request
}

// NewProxy starts a proxy in front of the server at an endpoint, which is so far away. The caller closes it.
func NewProxy(endpoint string, roundTrip time.Duration) (*Proxy, error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	p := &Proxy{delay: roundTrip}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		ModifyResponse: func(r *http.Response) error {
			if of, ok := r.Request.Context().Value(requestKey{}).(*Request); ok {
				p.change(func() { of.Status = r.StatusCode })
				r.Body = &counted{ReadCloser: r.Body, add: p.adds(of)}
			}
			return nil
		},
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of := requestOf(r)
		p.change(func() {
			of.Begin = time.Now()
			p.requests = append(p.requests, of)
		})
		time.Sleep(p.delay)
		r.Body = &counted{ReadCloser: r.Body, add: p.adds(of)}
		forward.ServeHTTP(w, r.WithContext(withRequest(r.Context(), of)))
		p.change(func() { of.End = time.Now() })
	}))
	return p, nil
}

// change changes requests while nobody looks at them.
func (p *Proxy) change(how func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how()
}

func (p *Proxy) adds(of *Request) func(int) {
	return func(n int) { p.change(func() { of.Bytes += int64(n) }) }
}

// Mark is a moment in what has passed.
type Mark int

// Mark returns the moment of now.
func (p *Proxy) Mark() Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Mark(len(p.requests))
}

// Since returns the requests that began after a moment, in order. Those that have not ended end now.
func (p *Proxy) Since(m Mark) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Request
	for _, r := range p.requests[m:] {
		is := *r
		if is.End.IsZero() {
			is.End = time.Now()
		}
		all = append(all, is)
	}
	slices.SortStableFunc(all, func(a, b Request) int { return a.Begin.Compare(b.Begin) })
	return all
}

// Quiet waits until no request has begun for so long: what goes on after an answer is over then. Whether the server
// answers at all is asked for ever.
func (p *Proxy) Quiet(long time.Duration) {
	for busy := true; busy; {
		m := p.Mark()
		time.Sleep(long)
		busy = slices.ContainsFunc(p.Since(m), func(r Request) bool { return r.Object != Probe })
	}
}

// counted counts what is read of a body.
type counted struct {
	io.ReadCloser
	add func(int)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if n > 0 {
		c.add(n)
	}
	return n, err
}
