package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/provider"
)

// record is a record as the service has it. Owner marks the resource that it was made for.
type record struct {
	Address string `json:"address"`
	TTL     int    `json:"ttl"`
	Owner   string `json:"owner"`
}

// client calls the zone's service.
type client struct{ endpoint, token string }

func (c *client) configure(_ context.Context, s Settings) error {
	c.endpoint, c.token = s.Endpoint, s.Token
	return nil
}

// get returns nil if there is no such record.
func (c *client) get(ctx context.Context, name string) (*record, error) {
	text, err := c.call(ctx, http.MethodGet, name, nil, false)
	if err != nil || text == nil {
		return nil, err
	}
	var have record
	return &have, json.Unmarshal(text, &have)
}

// put writes a record. One that is new is written only if there is none of its name by now.
func (c *client) put(ctx context.Context, name string, want record, isNew bool) error {
	text, err := json.Marshal(want)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, http.MethodPut, name, text, isNew)
	return err
}

func (c *client) delete(ctx context.Context, name string) error {
	_, err := c.call(ctx, http.MethodDelete, name, nil, false)
	return err
}

// call returns the body of the answer, nil for a 404. Its errors say whether the call may have had an effect.
func (c *client) call(ctx context.Context, method, name string, body []byte, isNew bool) ([]byte, error) {
	address := c.endpoint + "/records/" + url.PathEscape(name)
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if isNew {
		req.Header.Set("If-None-Match", "*")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, unanswered(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, &provider.Unknown{Err: err}
	}
	refused := fmt.Errorf("%s %s: %s", method, address, resp.Status)
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		return nil, nil
	case code < 300:
		return text, nil
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable, code == http.StatusPreconditionFailed:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return nil, &provider.NotDone{Err: refused, RetryAfter: time.Duration(seconds) * time.Second}
	case code >= 500:
		return nil, &provider.Unknown{Err: refused} // a proxy may have passed it on
	}
	return nil, refused
}

// unanswered says what it means that there is no answer: without a connection, nothing was sent.
func unanswered(err error) error {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return &provider.NotDone{Err: err}
	}
	return &provider.Unknown{Err: err}
}
