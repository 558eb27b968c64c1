package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// counter is a proxy in front of an S3 server that counts requests and the bytes of their bodies, both ways. The
// checkpoint that ends an update is counted apart.
type counter struct {
	*httptest.Server
	requests, bytes, checkpoints atomic.Int64
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
			r.Body = &counted{r.Body, c.of(r.Request.URL.Path)}
			return nil
		},
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		r.Body = &counted{r.Body, c.of(r.URL.Path)}
		proxy.ServeHTTP(w, r)
	}))
	return c, nil
}

func (c *counter) of(path string) *atomic.Int64 {
	if strings.Contains(path, "/checkpoints/") {
		return &c.checkpoints
	}
	return &c.bytes
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

// parts are the service's parts in processes of their own.
type parts struct {
	running []*exec.Cmd
}

func (p *parts) start(dir string, env []string, args ...string) error {
	log, err := os.Create(filepath.Join(dir, "log-"+strings.Join(args[:min(2, len(args))], "-")))
	if err != nil {
		return err
	}
	cmd := exec.Command(ours, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	p.running = append(p.running, cmd)
	return nil
}

func (p *parts) stop() {
	for i := len(p.running) - 1; i >= 0; i-- {
		cmd := p.running[i]
		_ = cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
	}
}

// measureApart stops the embedded service, starts its parts one by one with a counting proxy before S3, and measures what can
// only be seen so: the worker's memory, and what travels to and from S3.
func (s *stage) measureApart(ctx context.Context, found results) error {
	h := s.house
	if _, err := output(ctx, s.dir, h.env, ours, "dev", "stop"); err != nil {
		return err
	}
	proxy, err := newCounter(h.status.S3Endpoint)
	if err != nil {
		return err
	}
	defer proxy.Close()
	p := &parts{}
	defer p.stop()
	env := slices.Concat(s.env, []string{"DEPLOYCTL_KEY=" + base64.StdEncoding.EncodeToString(h.keys.Master), "DEPLOYCTL_TOKEN=bench-bench-bench",
		"DEPLOYCTL_TEMPORAL_ADDRESS=" + h.status.TemporalAddress, "DEPLOYCTL_TEMPORAL_NAMESPACE=" + h.status.Namespace,
		"DEPLOYCTL_S3_ENDPOINT=" + proxy.URL, "DEPLOYCTL_S3_BUCKET=" + h.status.Bucket,
		"DEPLOYCTL_S3_ACCESS_KEY_ID=" + h.keys.S3AccessKey, "DEPLOYCTL_S3_SECRET_ACCESS_KEY=" + h.keys.S3SecretKey,
		"DEPLOYCTL_LISTEN=" + h.status.APIAddress})
	for _, args := range [][]string{
		{"dev", "s3", "--home", h.status.Home}, {"dev", "temporal", "--home", h.status.Home}, {"serve"}, {"worker"},
	} {
		if err := p.start(s.dir, env, args...); err != nil {
			return err
		}
	}
	worker := p.running[3].Process.Pid
	client := slices.Concat(env, []string{"DEPLOYCTL_SERVER=" + h.status.APIAddress})
	ratio, err := s.bytesOfAChange(ctx, client, proxy)
	if err != nil {
		return err
	}
	found.figure(bytesRatio, ratio)
	found.figure(workerPeak, peak(worker))
	return nil
}

// bytesOfAChange updates one resource of a large and of a small stack, and gives the ratio of the bytes.
func (s *stage) bytesOfAChange(ctx context.Context, env []string, proxy *counter) (float64, error) {
	bytes := map[int]float64{}
	for _, n := range []int{10, 1000} {
		r := row{name: fmt.Sprintf("change-%d", n), n: n}
		for size := 1; size <= 2; size++ {
			dir, err := s.project(r, "apart", n, size)
			if err != nil {
				return 0, err
			}
			if size == 1 {
				if err := s.introduce(ctx, dir, env); err != nil {
					return 0, err
				}
			}
			before, requests := proxy.bytes.Load(), proxy.requests.Load()
			if _, err := output(ctx, dir, env, ours, append(create.arguments(), "--quiet")...); err != nil {
				return 0, err
			}
			bytes[n] = float64(proxy.bytes.Load() - before)
			fmt.Printf("\nS3, stack of %d, %s: %d requests, %.1f KiB without checkpoints\n", n,
				[]string{"created", "one resource changed"}[size-1], proxy.requests.Load()-requests, bytes[n]/1024)
		}
	}
	return bytes[1000] / bytes[10], nil
}

// introduce makes a stack that knows the cloud by its configuration: a service does not get the client's environment.
func (s *stage) introduce(ctx context.Context, dir string, env []string) error {
	if _, err := output(ctx, dir, env, ours, "stack", "init", "dev"); err != nil {
		return err
	}
	_, err := output(ctx, dir, env, ours, "config", "set", "fake:endpoint", s.cloud.URL(), "--stack", "dev")
	return err
}
