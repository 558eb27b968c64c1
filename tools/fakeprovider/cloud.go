package fakeprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// object is a thing as the cloud shows it.
type object struct {
	ID         string            `json:"id,omitempty"`
	Name       string            `json:"name,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	Properties map[string]any    `json:"properties,omitempty"`
}

// cloud is the provider's client of the fake cloud. It sends each request once and only once. So connections are kept
// for reads alone: a transport may send a request again when a connection that it kept turns out to be dead.
type cloud struct {
	endpoint, token string
	reads, writes   http.Client
}

func newCloud(endpoint, token string) *cloud {
	return &cloud{
		endpoint, token, http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// do sends a request.
func (c *cloud) do(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return c.writes.Do(r)
	}
	r.GetBody = nil // without it, the transport sends none again
	return c.reads.Do(r)
}

// call makes one request on behalf of owner and decodes the answer into out, unless that is nil. Its error is a gRPC
// status.
func (c *cloud) call(ctx context.Context, req request, out any) error {
	if c.endpoint == "" {
		return notConfigured()
	}
	body, err := json.Marshal(req.body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, req.method, c.endpoint+"/v1/objects"+req.path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("X-Fakecloud-Owner", req.owner)
	r.Header.Set("X-Fakecloud-Caller", strconv.Itoa(os.Getpid()))
	res, err := c.do(r)
	if err != nil {
		return lost(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 400 {
		return refused(res)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return lost(ctx, err)
	}
	_, _ = io.Copy(io.Discard, res.Body) // up to its end, so that the connection is kept
	return nil
}

// cancelled tells the cloud that the provider was asked to give up. A cloud that cannot be reached need not know.
func (c *cloud) cancelled(ctx context.Context) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+"/v1/cancel", nil)
	if c.endpoint == "" || err != nil {
		return
	}
	if res, err := c.do(r); err == nil {
		_ = res.Body.Close()
	}
}

// request is one request to the cloud.
type request struct {
	method, path, owner string
	body                any
}

// path is that of a kind, or of one thing of it.
func path(kind string, id ...string) string {
	p := "/" + url.PathEscape(kind)
	for _, part := range id {
		p += "/" + url.PathEscape(part)
	}
	return p
}

// within bounds a call by the resource's custom timeout, in seconds, 0 for none, and ends it when the provider is told
// to cancel.
func (f *fake) within(ctx context.Context, seconds float64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(f.life, cancel)
	end := func() { stop(); cancel() }
	if seconds <= 0 {
		return ctx, end
	}
	ctx, expire := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
	return ctx, func() { expire(); end() }
}
