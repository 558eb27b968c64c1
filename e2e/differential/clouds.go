package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// clouds serves any number of fake clouds at one address, each below a path of its own.
type clouds struct {
	url    string
	server *http.Server

	mu    sync.Mutex
	named map[string]*fakecloud.Cloud
}

func openClouds() (*clouds, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &clouds{url: "http://" + listener.Addr().String(), named: map[string]*fakecloud.Cloud{}}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	go func() { _ = c.server.Serve(listener) }() // until close
	return c, nil
}

func (c *clouds) close() { _ = c.server.Close() }

// ServeHTTP passes a request on to the cloud that its path names.
func (c *clouds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	c.mu.Lock()
	cloud := c.named[name]
	c.mu.Unlock()
	if cloud == nil {
		http.NotFound(w, r)
		return
	}
	http.StripPrefix("/"+name, cloud).ServeHTTP(w, r)
}

// open makes a cloud and returns a client of it; the client's URL is what providers use.
func (c *clouds) open(name string) (*fakecloud.Client, error) {
	cloud, err := fakecloud.New(fakecloud.Options{})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named[name] = cloud
	return fakecloud.NewClient(c.url + "/" + name), nil
}

// forget ends a cloud.
func (c *clouds) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.named, name)
}

// disturb makes an update's changes from outside and sets its faults.
func disturb(ctx context.Context, cloud *fakecloud.Client, u update, stack string) error {
	for _, c := range u.Outside {
		if err := c.make(ctx, cloud, u.urn(stack, c.Step)); err != nil {
			return err
		}
	}
	var all []error
	for _, f := range u.allFaults() {
		all = append(all, cloud.Set(ctx, f))
	}
	return errors.Join(all...)
}

// calm lifts an update's faults.
func calm(ctx context.Context, cloud *fakecloud.Client, u update) error {
	var all []error
	for _, f := range u.allFaults() {
		all = append(all, cloud.Lift(ctx, f.Name))
	}
	return errors.Join(all...)
}

// allFaults are the update's faults and its gate.
func (u update) allFaults() []fakecloud.Fault {
	if u.CancelAt == nil {
		return u.Faults
	}
	return append(slices.Clone(u.Faults), *u.CancelAt)
}

// make makes the change: of a step's object, on every object of its URN.
func (c change) make(ctx context.Context, cloud *fakecloud.Client, urn string) error {
	if c.Make != "" {
		return cloud.Put(ctx, fakecloud.Object{Kind: "named", ID: c.Make, Name: c.Make,
			Properties: map[string]any{"size": 1, "zone": "a", "name": c.Make}})
	}
	objects, err := cloud.Objects(ctx, "")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.Owner != urn {
			continue
		}
		if c.Size == 0 {
			err = cloud.Remove(ctx, o.Kind, o.ID)
		} else {
			o.Properties["size"] = c.Size
			err = cloud.Put(ctx, o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
