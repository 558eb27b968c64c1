package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/deployctl/deployctl/e2e/cluster"
)

// counter is a proxy in front of an S3 server that counts requests and the bytes of their bodies, both ways, but for
// the checkpoint that our updates write at their end.
type counter struct {
	*httptest.Server
	requests, bytes, aside atomic.Int64
}

func newCounter(endpoint string) (*counter, error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	c := &counter{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: func(r *http.Response) error {
			r.Body = &counted{r.Body, c.of(r.Request)}
			return nil
		},
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		r.Body = &counted{r.Body, c.of(r)}
		proxy.ServeHTTP(w, r)
	}))
	return c, nil
}

func (c *counter) of(r *http.Request) *atomic.Int64 {
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/checkpoints/") {
		return &c.aside
	}
	return &c.bytes
}

// count gives what f asks of S3.
func (c *counter) count(f func() error) (m measured, err error) {
	requests, bytes := c.requests.Load(), c.bytes.Load()
	err = f()
	return measured{requests: float64(c.requests.Load() - requests), carried: float64(c.bytes.Load() - bytes)}, err
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// measureApart stops the embedded service, starts its parts one by one with a counting proxy before S3, and measures
// what can only be seen so: the worker's memory, and what travels to and from S3.
func (s *stage) measureApart(ctx context.Context, played []row, found results) error {
	h := s.house
	if _, err := output(ctx, s.dir, h.env, ours, "dev", "stop"); err != nil {
		return err
	}
	proxy, err := newCounter(h.S3Endpoint)
	if err != nil {
		return err
	}
	defer proxy.Close()
	parts, err := cluster.Start(ctx, ours, s.dir, s.env, h.Home, proxy.URL, 1)
	if err != nil {
		return err
	}
	defer parts.Stop()
	worker := parts.Workers[0].PID()
	client := remote{s, parts.Env}
	ratio, err := client.bytesOfAChange(ctx, proxy)
	if err != nil {
		return err
	}
	found.figure(bytesRatio, ratio)
	found.figure(workerPeak, cluster.Peak(worker))
	peer := &stock{name: stockS3, env: slices.Concat(s.env, h.s3Environment(proxy.URL))}
	for _, r := range played {
		contestants := []contestant{client, peer}
		if r.once { // the stock CLI would take minutes
			contestants = contestants[:1]
		}
		for _, c := range contestants {
			dir, err := s.project(row{name: s3(r.name), n: r.n, chain: r.chain}, c.String(), r.n, 0)
			if err != nil {
				return err
			}
			if err := c.prepare(ctx, dir); err != nil {
				return err
			}
			for _, op := range operations {
				m, err := proxy.count(func() error { _, err := c.play(ctx, dir, op); return err })
				if err != nil {
					return err
				}
				found.add(s3(r.name), c.String(), op, m)
			}
		}
	}
	found.printTraffic(played)
	return nil
}

// remote is deployctl as a client of the service in parts.
type remote struct {
	stage *stage
	env   []string
}

func (r remote) String() string { return ours }

// prepare makes a stack that knows the cloud by its configuration: a service does not get the client's environment.
func (r remote) prepare(ctx context.Context, dir string) error {
	if _, err := output(ctx, dir, r.env, ours, "stack", "init", "dev"); err != nil {
		return err
	}
	_, err := output(ctx, dir, r.env, ours, "config", "set", "fake:endpoint", r.stage.cloud.URL(), "--stack", "dev")
	return err
}

func (r remote) play(ctx context.Context, dir string, op operation) (measured, error) {
	m, _, err := play(ctx, dir, r.env, ours, append(op.arguments(), "--quiet")...)
	return m, err
}

// bytesOfAChange updates one resource of a large and of a small stack, and gives the ratio of the bytes.
func (r remote) bytesOfAChange(ctx context.Context, proxy *counter) (float64, error) {
	bytes := map[int]float64{}
	for _, n := range []int{10, 1000} {
		changing := row{name: fmt.Sprintf("change-%d", n), n: n}
		for size := 1; size <= 2; size++ {
			dir, err := r.stage.project(changing, "apart", n, size)
			if err != nil {
				return 0, err
			}
			if size == 1 {
				if err := r.prepare(ctx, dir); err != nil {
					return 0, err
				}
			}
			m, err := proxy.count(func() error { _, err := r.play(ctx, dir, create); return err })
			if err != nil {
				return 0, err
			}
			bytes[n] = m.carried
			fmt.Printf("\nS3, stack of %d, %s: %.0f requests, %.1f KiB, and %.1f KiB of written checkpoints so far\n",
				n, []string{"created", "one resource changed"}[size-1], m.requests, m.carried/1024,
				float64(proxy.aside.Load())/1024)
		}
	}
	return bytes[1000] / bytes[10], nil
}
