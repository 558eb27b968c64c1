package fakecloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// Client is a test's hold on a running cloud: it sets faults, waits at gates, reads the log and meddles. Safe for
// concurrent use.
type Client struct{ base string }

// NewClient makes a client of the cloud at a URL such as http://127.0.0.1:4000.
func NewClient(base string) *Client { return &Client{base: base} }

// URL is the cloud's address, for providers.
func (c *Client) URL() string { return c.base }

// Set puts a fault in place; one of the same name is replaced.
func (c *Client) Set(ctx context.Context, f Fault) error {
	return c.call(ctx, http.MethodPut, "/admin/faults/"+url.PathEscape(f.Name), f, nil)
}

// Lift removes a fault and lets go whom it held. "" removes all.
func (c *Client) Lift(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/admin/faults"+escaped(name), nil, nil)
}

// Faults says which faults are in place and how often each struck.
func (c *Client) Faults(ctx context.Context) (all []FaultStatus, err error) {
	return all, c.call(ctx, http.MethodGet, "/admin/faults", nil, &all)
}

// Gate is the test's side of a fault that it waits for; most often a gate, but Wait works for every fault.
type Gate struct {
	client *Client
	name   string
}

// Gate names a gate that was, or will be, set.
func (c *Client) Gate(name string) Gate { return Gate{c, name} }

// SetGate sets a gate: Do is filled in.
func (c *Client) SetGate(ctx context.Context, f Fault) (Gate, error) {
	f.Do = Hold
	return c.Gate(f.Name), c.Set(ctx, f)
}

// Wait returns when a request has come to the gate, whether or not it is still held there.
func (g Gate) Wait(ctx context.Context) error { return g.WaitFor(ctx, 1) }

// WaitFor returns when n requests have come to the gate since it was set.
func (g Gate) WaitFor(ctx context.Context, n int) error {
	return g.poll(ctx, "?times="+strconv.Itoa(n))
}

// WaitEmpty returns when nobody is held at the gate. After killing a caller who is held there, wait for this before
// opening it: then the cloud has noticed that the caller is gone.
func (g Gate) WaitEmpty(ctx context.Context) error { return g.poll(ctx, "") }

func (g Gate) poll(ctx context.Context, query string) error {
	for {
		status, err := g.client.do(ctx, http.MethodGet, "/admin/faults/"+url.PathEscape(g.name)+"/wait"+query, nil, nil)
		if err != nil {
			return fmt.Errorf("waiting at %q: %w", g.name, err)
		}
		if status == http.StatusOK {
			return nil
		}
	}
}

// Open lets everyone through who is held at the gate, and everyone who comes later.
func (g Gate) Open(ctx context.Context) error {
	return g.client.call(ctx, http.MethodPost, "/admin/faults/"+url.PathEscape(g.name)+"/open", nil, nil)
}

// Objects gives what stands in the cloud, of one kind or, for "", of all, by kind and id.
func (c *Client) Objects(ctx context.Context, kind string) (all []Object, err error) {
	return all, c.call(ctx, http.MethodGet, "/admin/objects?kind="+url.QueryEscape(kind), nil, &all)
}

// Put makes or changes an object behind the providers' backs. One that it makes is foreign.
func (c *Client) Put(ctx context.Context, o Object) error {
	return c.call(ctx, http.MethodPut, "/admin/objects"+escaped(o.Kind, o.ID), o, nil)
}

// Remove deletes an object behind the providers' backs.
func (c *Client) Remove(ctx context.Context, kind, id string) error {
	return c.call(ctx, http.MethodDelete, "/admin/objects"+escaped(kind, id), nil, nil)
}

// Effects gives the log of effects from the one after seq on; 0 gives all.
func (c *Client) Effects(ctx context.Context, seq int) (log []Effect, err error) {
	return log, c.call(ctx, http.MethodGet, "/admin/effects?after="+strconv.Itoa(seq), nil, &log)
}

// Requests gives every request that providers made since the cloud's process started.
func (c *Client) Requests(ctx context.Context) (log []Request, err error) {
	return log, c.call(ctx, http.MethodGet, "/admin/requests", nil, &log)
}

// Duplicates gives the groups of objects that share a kind and an owner: more than one where a program asked for one.
// While a replacement is under way two generations share an owner rightly; ask when nothing is.
func (c *Client) Duplicates(ctx context.Context) ([][]Object, error) {
	all, err := c.Objects(ctx, "")
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(o Object) bool { return o.Foreign || o.Owner == "" })
	byOwner := func(a, b Object) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Owner, b.Owner)) }
	slices.SortStableFunc(all, byOwner)
	var groups [][]Object
	for len(all) > 0 {
		n := 1
		for n < len(all) && byOwner(all[0], all[n]) == 0 {
			n++
		}
		if n > 1 {
			groups = append(groups, all[:n])
		}
		all = all[n:]
	}
	return groups, nil
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	_, err := c.do(ctx, method, path, in, out)
	return err
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) (status int, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return 0, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 400 {
		no := refusal{Message: res.Status}
		_ = json.NewDecoder(res.Body).Decode(&no) // not ours: the status has to do
		return res.StatusCode, fmt.Errorf("%s %s: %w", method, path, &no)
	}
	if out == nil {
		return res.StatusCode, nil
	}
	return res.StatusCode, json.NewDecoder(res.Body).Decode(out)
}

// escaped joins the parts that are not empty into a path.
func escaped(parts ...string) (path string) {
	for _, part := range parts {
		if part != "" {
			path += "/" + url.PathEscape(part)
		}
	}
	return path
}
