package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// status is what the embedded service says about itself.
type status struct {
	PID                                int
	APIAddress, Certificate, TokenFile string
}

func (e *embedded) status(ctx context.Context) (s status, err error) {
	text, err := e.run(ctx, "dev", "status", "--json")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// killer kills the embedded service again and again, in the middle of what is played, and starts it anew. What is
// played must come to the same.
type killer struct {
	stop  context.CancelFunc
	ended chan struct{}
	kills int // once it has ended
}

// startKiller kills the service whenever a pause has passed since it started. If it cannot be started again, failed is
// called.
func startKiller(ctx context.Context, e *embedded, pause time.Duration, failed func(error)) *killer {
	ctx, stop := context.WithCancel(ctx)
	k := &killer{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(k.ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			if err := e.restart(context.WithoutCancel(ctx)); err != nil {
				failed(err)
				return
			}
			k.kills++
		}
	}()
	return k
}

// end returns how often the service was killed.
func (k *killer) end() int {
	k.stop()
	<-k.ended
	return k.kills
}

// starts is how often a start is tried on a machine that is too slow for it.
const starts = 5

// restart kills the service and starts it again, at the same address.
func (e *embedded) restart(ctx context.Context) error {
	s, err := e.status(ctx)
	if err != nil {
		return err
	}
	if s.PID != 0 { // else it has ended by itself, and is only started
		process, err := os.FindProcess(s.PID)
		if err == nil {
			err = process.Kill()
		}
		if err != nil {
			return fmt.Errorf("kill the service: %w", err)
		}
	}
	for range starts {
		if _, err = e.run(ctx, "dev", "--background"); err == nil {
			return nil
		}
	}
	return err
}
