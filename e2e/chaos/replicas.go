package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// A seed of the replicas has so many servers of the API, clients, and kills.
const (
	replicaServers = 3
	replicaClients = 30
	replicaKills   = 6
)

// roundRobin is a TCP proxy that gives each connection to the next server that takes it.
type roundRobin struct {
	net.Listener
	servers []string

	mu   sync.Mutex
	next int
}

func newRoundRobin(servers ...string) (*roundRobin, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &roundRobin{Listener: listener, servers: servers}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			go p.carry(client)
		}
	}()
	return p, nil
}

// carry copies what both ends of a connection say, until one of them ends it.
func (p *roundRobin) carry(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := p.dial()
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	over := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1]) // the other end may have gone
			over <- struct{}{}
		}()
	}
	<-over
}

func (p *roundRobin) dial() (server net.Conn, err error) {
	for range p.servers {
		p.mu.Lock()
		to := p.servers[p.next%len(p.servers)]
		p.next++
		p.mu.Unlock()
		if server, err = net.Dial("tcp", to); err == nil {
			return server, nil
		}
	}
	return nil, err
}

// replicated plays a seed with all clients and kills.
func replicated(ctx context.Context, w *world, seed int) (outcome, error) {
	return w.replicated(ctx, seed, replicaClients, replicaKills)
}

// replicated has clients update by way of a proxy before several servers, of which one is killed again and again. No
// update fails.
func (w *world) replicated(ctx context.Context, seed, clients, kills int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	for len(w.More) < replicaServers-1 {
		if err := w.AddServe(ctx, binary); err != nil {
			return o, err
		}
	}
	var addresses []string
	for _, url := range append([]string{w.Pulumi}, w.MorePulumi...) {
		addresses = append(addresses, strings.TrimPrefix(url, "http://"))
	}
	proxy, err := newRoundRobin(addresses...)
	if err != nil {
		return o, err
	}
	defer func() { _ = proxy.Close() }()
	stocks, err := w.crowd(ctx, fmt.Sprintf("replicas-%d", seed), clients, "http://"+proxy.Addr().String())
	if err != nil {
		return o, err
	}
	defer func() {
		for _, c := range stocks {
			c.close()
		}
		stocks[0].stage.close()
	}()
	ups, err := begun(ctx, stocks)
	if err != nil {
		return o, err
	}
	if err := w.killServers(ctx, stocks, kills, rand.New(rand.NewPCG(uint64(seed), 20))); err != nil {
		return o, err
	}
	for _, up := range ups {
		err = errors.Join(err, up.wait(ctx))
	}
	for _, c := range stocks {
		state, e := c.exported(ctx)
		if e == nil && len(state.PendingOperations) > 0 {
			e = fmt.Errorf("%s has pending operations", c.stack)
		}
		err = errors.Join(err, e)
	}
	twice, e := stocks[0].cloud.Duplicates(ctx)
	o.Counts.Duplicates = len(twice)
	o.Tally = map[string]int{"updates": len(stocks), "kills": kills}
	return o, errors.Join(err, e)
}

// crowd makes a stack for each client, all on one cloud.
func (w *world) crowd(ctx context.Context, name string, clients int, service string) (all []*stock, err error) {
	nodes := cliNodes(rand.New(rand.NewPCG(0, 22)))
	first, err := w.newStage(ctx, name, "yaml", nodes)
	if err != nil {
		return nil, err
	}
	for i := range clients {
		s := first
		if i > 0 {
			stack := fmt.Sprintf("%s-%d", name, i)
			s = &stage{world: w, dir: filepath.Join(w.dir, stack), stack: stack, cloud: first.cloud}
			if err := errors.Join(write(s.dir, project, "yaml", nodes), s.init(ctx)); err != nil {
				return nil, err
			}
		}
		c, err := s.newStock()
		if err != nil {
			return nil, err
		}
		c.env = append(c.env, "PULUMI_BACKEND_URL="+service)
		all = append(all, c)
	}
	return all, nil
}

// begun starts an update of each client, and returns once each has a resource under way: the stock CLI repeats what it
// asks from then on.
func begun(ctx context.Context, all []*stock) (ups []*command, err error) {
	gate, err := all[0].cloud.SetGate(ctx, fakecloud.Fault{Name: "all", Op: fakecloud.Create})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		up, err := c.starts(changes("up")...)
		if err != nil {
			return nil, err
		}
		ups = append(ups, up)
	}
	err = eventually(ctx, "each client creates", func() (bool, error) {
		if i := slices.IndexFunc(ups, (*command).over); i >= 0 {
			return false, ups[i].wait(ctx)
		}
		faults, err := all[0].cloud.Faults(ctx)
		return len(faults) == 1 && faults[0].Held == len(all), err // everything else stands upon the first resource
	})
	return ups, errors.Join(err, gate.Open(ctx))
}

// killServers kills a server each time that the cloud has got so many objects more, and brings it back.
func (w *world) killServers(ctx context.Context, clients []*stock, kills int, r *rand.Rand) error {
	serves := append([]*cluster.Part{w.Serve}, w.More...)
	for n := 1; n <= kills; n++ {
		want := len(clients) * cliSize * n / (kills + 1)
		err := eventually(ctx, "the next kill", func() (bool, error) {
			objects, err := clients[0].cloud.Objects(ctx, "")
			return len(objects) >= want, err
		})
		if err != nil {
			return err
		}
		victim := serves[r.IntN(len(serves))]
		if err := errors.Join(victim.Kill(), victim.Start()); err != nil {
			return err
		}
	}
	return nil
}

// replicasLine sums them up.
func replicasLine(all []outcome, _ bool) (string, []string) {
	sum, n := totals(all)
	return fmt.Sprintf("%d updates of the stock CLI by way of %d servers, of which one was killed %d times, %s",
		sum["updates"], replicaServers, sum["kills"], n), n.broken()
}
