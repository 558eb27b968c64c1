// Command bench measures deployctl against the stock CLI: the same programs, the same language host, the same provider
// plugin and the same cloud, in turn. It prints a table and the targets, and fails when one is missed.
//
// It needs bin/deployctl, and pulumi, pulumi-language-scenario, pulumi-resource-fake and fakecloud on PATH; `make
// bench` sees to that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// row is a program that is measured.
type row struct {
	name  string
	n     int
	chain bool
	delay int // milliseconds of every create, update and delete
	reps  int
	// large says that the stock CLI looks at the resources that deployctl has created, and does not play it on S3: to
	// create them itself, and to play it there, would take half an hour each.
	large bool
	// once says that the stock CLI creates and destroys in the first round alone, which takes it minutes, and not with its
	// state in a file. In later rounds it looks at the resources that deployctl has created, as at a large row.
	once bool
}

var rows = []row{
	{name: "10 flat", n: 10, reps: 3},
	{name: "100 flat", n: 100, reps: 3},
	{name: "chain of 100", n: 100, chain: true, reps: 3},
	{name: "200 flat, 200 ms", n: 200, delay: 200, reps: 3},
	{name: "1000 flat", n: 1000, reps: 3, once: true},
	{name: "5000 flat", n: 5000, reps: 1, large: true},
}

// parallel is every contestant's --parallel.
const parallel = 16

func main() {
	only := flag.String("rows", "", "measure only the rows whose names match this regular expression")
	reps := flag.Int("reps", 0, "rounds of each row; 0 means 3, and 1 of the largest")
	crowd := flag.Int("crowd", 100, "how many stock CLIs update at once on deployctl; 0: none")
	apart := flag.Bool("apart", true, "also measure with the service's parts in processes of their own")
	far := flag.Bool("away", true, "also measure with S3 and Temporal far away")
	alone := flag.Bool("alone", true, "also measure what the stock CLI does not have: watch, and settle rules")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := run(ctx, regexp.MustCompile(*only), options{reps: *reps, crowd: *crowd,
		alone: *alone, apart: *apart, away: *far})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// options are what is measured.
type options struct {
	reps, crowd        int
	alone, apart, away bool
}

func run(ctx context.Context, only *regexp.Regexp, o options) (failed int, err error) {
	stage, err := newStage(ctx)
	if err != nil {
		return 0, err
	}
	defer stage.close()
	found, played := results{}, []row{}
	begun := time.Now()
	sofar := func() { fmt.Printf("\nmeasured so far: %s\n", time.Since(begun).Round(time.Second)) }
	for _, r := range rows {
		if !only.MatchString(r.name) {
			continue
		}
		if o.reps > 0 {
			r.reps = o.reps
		}
		if err := stage.measure(ctx, r, found); err != nil {
			return 0, fmt.Errorf("%s: %w", r.name, err)
		}
		found.print(r)
		sofar()
		if r.delay == 0 && !r.large {
			played = append(played, r)
		}
	}
	if o.crowd > 0 {
		if err := stage.measureCrowd(ctx, o.crowd, found); err != nil {
			return 0, fmt.Errorf("stock CLIs at once: %w", err)
		}
		sofar()
	}
	if o.alone {
		if err := errors.Join(stage.measureEdits(ctx, found), stage.measureLooking(ctx, found)); err != nil {
			return 0, err
		}
		sofar()
	}
	if o.apart {
		if err := stage.measureApart(ctx, played, found); err != nil {
			return 0, fmt.Errorf("the parts of the service in processes of their own: %w", err)
		}
		sofar()
	}
	if o.away {
		if err := stage.stopHouse(ctx); err != nil {
			return 0, err
		}
		if err := stage.measureAway(ctx, only, o.reps, found); err != nil {
			return 0, fmt.Errorf("far away: %w", err)
		}
		sofar()
	}
	return found.judge(), nil
}
