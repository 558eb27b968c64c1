package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/traffic"
)

// counter is a proxy in front of an S3 server that counts requests and the bytes of their bodies, both ways, but for
// the checkpoint that our updates write at their end.
type counter struct{ *traffic.Proxy }

// since gives what was asked of S3 since a moment, and the bytes of written checkpoints.
func (c counter) since(m traffic.Mark) (of measured, aside float64) {
	all := c.Since(m)
	of.requests, of.chain = float64(len(all)), float64(len(traffic.Chain(all)))
	for _, r := range all {
		if r.Method == http.MethodPut && strings.Contains(r.Object, "checkpoints/") {
			aside += float64(r.Bytes)
		} else {
			of.carried += float64(r.Bytes)
		}
	}
	return of, aside
}

// count gives what f asks of S3.
func (c counter) count(f func() (measured, error)) (measured, error) {
	before := c.Mark()
	m, err := f()
	of, _ := c.since(before)
	of.wall = m.wall
	return of, err
}

// stopHouse stops the embedded service, whose servers others use from then on.
func (s *stage) stopHouse(ctx context.Context) error {
	_, err := output(ctx, s.dir, s.house.env, ours, "dev", "stop")
	return err
}

// measureApart stops the embedded service, starts its parts one by one with a counting proxy before S3, and measures
// what can only be seen so: the worker's memory, and what travels to and from S3.
func (s *stage) measureApart(ctx context.Context, played []row, found results) error {
	h := s.house
	if err := s.stopHouse(ctx); err != nil {
		return err
	}
	through, err := traffic.NewProxy(h.S3Endpoint, 0)
	if err != nil {
		return err
	}
	proxy := counter{through}
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
				m, err := proxy.count(func() (measured, error) { return c.play(ctx, dir, op) })
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
func (r remote) bytesOfAChange(ctx context.Context, proxy counter) (float64, error) {
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
			m, err := proxy.count(func() (measured, error) { return r.play(ctx, dir, create) })
			if err != nil {
				return 0, err
			}
			bytes[n] = m.carried
			_, aside := proxy.since(0)
			fmt.Printf("\nS3, stack of %d, %s: %.0f requests, %.1f KiB, and %.1f KiB of written checkpoints so far\n",
				n, []string{"created", "one resource changed"}[size-1], m.requests, m.carried/1024,
				aside/1024)
		}
	}
	return bytes[1000] / bytes[10], nil
}
