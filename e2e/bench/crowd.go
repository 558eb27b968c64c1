package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// crowdSize is how many resources each of the stock CLIs creates that update at once.
const crowdSize = 20

// stopwatch is a proxy in front of the Pulumi Service API that measures how long a journal's answer takes: from the end
// of the request to the beginning of the answer.
type stopwatch struct {
	*httptest.Server

	mu    sync.Mutex
	times []float64 // milliseconds
}

func newStopwatch(address string) *stopwatch {
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	w := &stopwatch{}
	to.Transport = w
	w.Server = httptest.NewServer(to)
	return w
}

// RoundTrip forwards a request.
func (w *stopwatch) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/journalentries") || r.Body == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	begin := time.Now()
	answer, err := http.DefaultTransport.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times = append(w.times, float64(time.Since(begin))/float64(time.Millisecond))
	return answer, err
}

// percentile returns the value that so many percent of the values do not exceed; NaN when there is none.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}

// measureCrowd has many stock CLIs create a stack each at once, after one that does so alone.
func (s *stage) measureCrowd(ctx context.Context, n int, found results) error {
	watch := newStopwatch(s.house.PulumiAddress)
	defer watch.Close()
	here, err := s.house.pulumiEnvironment(strings.TrimPrefix(watch.URL, "http://"))
	if err != nil {
		return err
	}
	stock := &stock{name: stockHere, env: slices.Concat(s.env, here)}
	dirs := make([]string, n+1)
	for i := range dirs {
		r := row{name: fmt.Sprintf("crowd %d", i), n: crowdSize}
		if dirs[i], err = s.project(r, stockHere, r.n, 0); err != nil {
			return err
		}
		if err := stock.prepare(ctx, dirs[i]); err != nil {
			return err
		}
	}
	alone, err := stock.play(ctx, dirs[n], create)
	if err != nil {
		return err
	}
	watch.times = nil
	walls, failures := make([]float64, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			m, err := stock.play(ctx, dirs[i], create)
			if walls[i] = m.wall; err != nil {
				failures[i] = fmt.Errorf("%s: %w", filepath.Base(dirs[i]), err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	share := math.Ceil(float64(n) / float64(runtime.NumCPU()))
	found.figure(crowdRatio, percentile(walls, 95)/(alone.wall*share))
	found.figure(journalHalf, percentile(watch.times, 50))
	found.figure(journalMost, percentile(watch.times, 99))
	fmt.Printf("\n### %d stock CLIs at once on deployctl, %d resources each\n\nup: alone %.2f s, p50 %.2f s, p95 %.2f s; "+
		"%d answers to journals: p50 %.1f ms, p99 %.1f ms\n", n, crowdSize, alone.wall, percentile(walls, 50),
		percentile(walls, 95), len(watch.times), percentile(watch.times, 50), percentile(watch.times, 99))
	return nil
}
