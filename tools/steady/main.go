// Command steady finds tests that roll dice: it plays `make test` again and again in fresh clones of the last commit,
// on a machine that it keeps busy, and prints how often each test failed.
//
//	go run ./tools/steady -n 5 -loops 6 -memory 4096
//
// The same tree must give the same verdict: a test that fails once here, without a fault of the product, is mended.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// order is what is to be played.
type order struct {
	n, loops, memory int
	command, dir     string
}

func main() {
	var o order
	flag.IntVar(&o.n, "n", 5, "play it `N` times")
	flag.IntVar(&o.loops, "loops", 6, "`N` processes beside it that compute all the time")
	flag.IntVar(&o.memory, "memory", 4096, "`MIB` of memory that a process beside it holds and touches")
	flag.StringVar(&o.command, "command", "make test TESTFLAGS=-count=1", "what is played, a `COMMAND` of the shell; no "+
		"result of an earlier run is taken for the test's")
	flag.StringVar(&o.dir, "dir", "", "`DIR` for clones and logs; not set: a temporary one. Logs of failures stay there")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "steady takes no arguments; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.play(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "steady:", err)
		stop()
		os.Exit(1)
	}
}

var errFailed = errors.New("not every run passed")

// play plays all runs and prints the table.
func (o *order) play(ctx context.Context) error {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "deployctl-steady-")
		if err != nil {
			return err
		}
		o.dir = dir
	}
	end, err := busy(o.loops, o.memory)
	defer end()
	if err != nil {
		return err
	}
	failures := tally{}
	failed := 0
	for run := 1; run <= o.n && ctx.Err() == nil; run++ {
		began := time.Now()
		log, err := o.once(ctx, run)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted in run %d: %w", run, ctx.Err())
		}
		result := "passed"
		if err != nil {
			failed++
			result = "FAILED (" + err.Error() + "): " + log
			text, err := os.ReadFile(log)
			if err != nil {
				return err
			}
			failures.add(string(text))
		}
		fmt.Printf("run %d of %d, %s: %s\n", run, o.n, time.Since(began).Round(time.Second), result)
	}
	fmt.Printf("%d of %d passed, with %d busy loops and %d MiB beside them\n%s", o.n-failed, o.n, o.loops, o.memory,
		failures)
	if failed > 0 {
		return errFailed
	}
	return nil
}

// once plays the command in a fresh clone, which is removed, and returns the path of its log.
func (o *order) once(ctx context.Context, run int) (log string, err error) {
	clone := filepath.Join(o.dir, fmt.Sprintf("clone-%d", run))
	log = filepath.Join(o.dir, fmt.Sprintf("run-%d.log", run))
	out, err := os.Create(log)
	if err != nil {
		return log, err
	}
	defer func() { _ = out.Close() }()
	defer func() { _ = os.RemoveAll(clone) }()
	for _, args := range [][]string{{"git", "clone", "--quiet", ".", clone}, {"sh", "-c", o.command}} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = out, out
		if args[0] == "sh" {
			cmd.Dir = clone
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // make and all that it starts end together
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
		cmd.WaitDelay = time.Minute
		if err := cmd.Run(); err != nil {
			return log, err
		}
	}
	return log, nil
}
