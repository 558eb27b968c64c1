package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/deployctl/deployctl/e2e/cluster"
)

// stock is the stock CLI on a stage's stack, in the service of the world. What it sends goes through a relay, which may
// stop it at a request.
type stock struct {
	*stage
	relay *relay
	env   []string
	left  []int // plugins whose CLI was killed
}

// newStock logs the stock CLI in to the service.
func (s *stage) newStock() (*stock, error) {
	service, err := url.Parse(s.Pulumi)
	if err != nil {
		return nil, err
	}
	c := &stock{stage: s, relay: newRelay(service)}
	c.env = append(slices.Clip(s.world.env), "PULUMI_BACKEND_URL="+c.relay.server.URL, "PULUMI_ACCESS_TOKEN="+s.Token,
		"PULUMI_SKIP_UPDATE_CHECK=true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true", "PULUMI_HOME="+s.dir+".home")
	return c, nil
}

// close ends the relay, and what killed commands left behind.
func (c *stock) close() {
	c.relay.server.CloseClientConnections()
	c.relay.server.Close()
	for _, pid := range c.left {
		_ = syscall.Kill(pid, syscall.SIGKILL) // most have ended by themselves
	}
}

// starts starts a command.
func (c *stock) starts(args ...string) (*command, error) {
	cmd, err := launch(c.dir, c.env, "pulumi", append(args, "--non-interactive", "--stack",
		"organization/"+project+"/"+c.stack)...)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running = append(slices.DeleteFunc(c.running, (*command).over), cmd)
	}
	return cmd, err
}

// runs runs a command to its success.
func (c *stock) runs(ctx context.Context, args ...string) (string, error) {
	cmd, err := c.starts(args...)
	if err != nil {
		return "", err
	}
	err = cmd.wait(ctx)
	return cmd.text(), err
}

// changes are the arguments of a command that changes the stack.
func changes(verb string) []string { return []string{verb, "--yes", "--skip-preview"} }

// kill kills a command of the stock CLI; its plugins live on for a moment, unless they are killed as well.
func (c *stock) kill(cmd *command, plugins bool) error {
	below, err := cluster.Below(cmd.cmd.Process.Pid, "pulumi-")
	err = errors.Join(err, cmd.cmd.Process.Kill())
	<-cmd.ended
	for _, pid := range below {
		if plugins {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with the CLI
		}
	}
	c.left = append(c.left, below...)
	c.relay.mu.Lock()
	defer c.relay.mu.Unlock()
	c.relay.dead = true
	return err
}

// relay passes the requests of the stock CLI on. It can hold one of them, before the service sees it or before the CLI
// sees the answer.
type relay struct {
	server *httptest.Server
	to     *httputil.ReverseProxy

	mu     sync.Mutex
	stop   stop
	seen   int
	held   chan struct{}  // closed when the request is held
	open   chan struct{}  // closed when it may go on
	writes []journalWrite // until the first client was killed
	dead   bool
}

// stop says which request is held: the nth whose path ends with a text.
type stop struct {
	path  string
	nth   int
	after bool // the service has answered
}

// journalWrite is a write of a client, to be sent again.
type journalWrite struct {
	path   string
	header http.Header
	body   []byte
}

func newRelay(service *url.URL) *relay {
	r := &relay{to: httputil.NewSingleHostReverseProxy(service)}
	r.to.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	r.server = httptest.NewServer(r)
	return r
}

// arm holds a request. It returns what is closed when that has come, and what lets it go on.
func (r *relay) arm(at stop) (held <-chan struct{}, open func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop, r.seen, r.held, r.open = at, 0, make(chan struct{}), make(chan struct{})
	return r.held, sync.OnceFunc(func() { close(r.open) })
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	at := r.see(req, body)
	if at != nil && !at.after {
		r.hold(req)
	}
	if at == nil || !at.after {
		r.to.ServeHTTP(w, req)
		return
	}
	answer := httptest.NewRecorder()
	r.to.ServeHTTP(answer, req)
	r.hold(req)
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // its reader has gone
}

// see keeps a write, and returns the stop if this is the request that is to be held.
func (r *relay) see(req *http.Request, body []byte) *stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.HasSuffix(req.URL.Path, "/journalentries") && !r.dead {
		r.writes = append(r.writes, journalWrite{req.URL.Path, req.Header.Clone(), body})
	}
	if r.held == nil || !strings.HasSuffix(req.URL.Path, r.stop.path) {
		return nil
	}
	if r.seen++; r.seen != r.stop.nth {
		return nil
	}
	at := r.stop
	return &at
}

// hold holds a request until it may go on, or its client has gone.
func (r *relay) hold(req *http.Request) {
	r.mu.Lock()
	held, open := r.held, r.open
	r.mu.Unlock()
	close(held)
	select {
	case <-open:
	case <-req.Context().Done():
	}
}

// late sends the last write of a journal again, and returns the status of the answer; 0 when there was none.
func (r *relay) late(ctx context.Context, service string) (int, error) {
	r.mu.Lock()
	writes := r.writes
	r.mu.Unlock()
	if len(writes) == 0 {
		return 0, nil
	}
	last := writes[len(writes)-1]
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, service+last.path, bytes.NewReader(last.body))
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"Authorization", "Content-Type", "Content-Encoding", "Accept"} {
		if value := last.header.Get(name); value != "" {
			req.Header.Set(name, value)
		}
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
