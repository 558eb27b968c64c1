package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// results are the measurements by "row | contestant | operation", and single figures by their name.
type results map[string][]measured

func key(row, contestant string, op operation) string {
	return row + " | " + contestant + " | " + string(op)
}

func (r results) add(row, contestant string, op operation, m measured) {
	k := key(row, contestant, op)
	r[k] = append(r[k], m)
}

// figure keeps a single number.
func (r results) figure(name string, value float64) { r[name] = []measured{{wall: value}} }

// median of one quantity; NaN when it was not measured.
func (r results) median(k string, of func(measured) float64) float64 {
	var values []float64
	for _, m := range r[k] {
		values = append(values, of(m))
	}
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func wall(m measured) float64   { return m.wall }
func cpu(m measured) float64    { return m.cpu }
func memory(m measured) float64 { return m.memory }
func events(m measured) float64 { return m.events }
func size(m measured) float64   { return m.bytes / 1024 }

func requests(m measured) float64 { return m.requests }
func chain(m measured) float64    { return m.chain }

// s3 is the key of a row's traffic with S3, which is counted in a pass of its own.
func s3(row string) string { return row + ", S3" }

// printTraffic shows what an operation of each row asks of S3.
func (r results) printTraffic(played []row) {
	fmt.Printf("\n### S3: requests and KiB of an operation, the written checkpoint aside\n\n| | | deployctl | | " +
		"stock, S3 | |\n|---|---|---|---|---|---|\n")
	for _, w := range played {
		for _, op := range operations {
			fmt.Printf("| %s | %s |", w.name, op)
			for _, c := range []string{ours, stockS3} {
				all := r[key(s3(w.name), c, op)]
				if len(all) == 0 {
					fmt.Print(" | |")
				}
				for _, m := range all {
					fmt.Printf(" %.0f | %.1f |", m.requests, m.carried/1024)
				}
			}
			fmt.Println()
		}
	}
}

// columns are the numbers of a row of the table; only the histories of deployctl are counted.
func (r results) columns(k string, histories bool) string {
	history := "| | "
	if histories {
		history = fmt.Sprintf("| %.0f | %.0f ", r.median(k, events), r.median(k, size))
	}
	least, most := math.Inf(1), 0.0
	for _, m := range r[k] {
		least, most = min(least, m.wall), max(most, m.wall)
	}
	return fmt.Sprintf("| %.2f | %.2f–%.2f | %.2f | %.0f %s|\n", r.median(k, wall), least, most, r.median(k, cpu),
		r.median(k, memory), history)
}

// print shows a row: medians, and the spread of the wall time.
func (r results) print(w row) {
	fmt.Printf("\n### %s (medians of %d)\n\n| | | wall s | (min–max) | CPU s | peak MiB | history events | KiB "+
		"|\n|---|---|---|---|---|---|---|---|\n", w.name, w.reps)
	for _, op := range operations {
		for _, c := range []string{ours, stockFile, stockS3, stockHere} {
			if k := key(w.name, c, op); len(r[k]) > 0 {
				fmt.Printf("| %s | %s %s", op, c, r.columns(k, c == ours))
			}
		}
	}
	if w.delay > 0 {
		floor := r.floor(w)
		fmt.Printf("\nT/T_floor (floor %.2f s) of create: deployctl %.2f, stock on file %.2f, on S3 %.2f\n", floor,
			r.median(key(w.name, ours, create), wall)/floor, r.median(key(w.name, stockFile, create), wall)/floor,
			r.median(key(w.name, stockS3, create), wall)/floor)
	}
}

// floor is the least time that a row's creates can take, in seconds.
func (r results) floor(w row) float64 {
	return math.Ceil(float64(w.n)/parallel) * float64(w.delay) / 1000
}

// target is a bound on a figure.
type target struct {
	name  string
	value float64
	most  float64
}

func (r results) targets() []target {
	against := func(row string, op operation, peer string, most float64) target {
		v := r.median(key(row, ours, op), wall) / r.median(key(row, peer, op), wall)
		return target{fmt.Sprintf("%s, %s: deployctl / %s", row, op, peer), v, most}
	}
	backend := func(row string, op operation, peer string, most float64) target {
		v := r.median(key(row, stockHere, op), wall) / r.median(key(row, peer, op), wall)
		return target{fmt.Sprintf("%s, %s: %s / %s", row, op, stockHere, peer), v, most}
	}
	perResource := func(row string, op operation, n, most float64) target {
		return target{fmt.Sprintf("%s, %s: history events a resource", row, op),
			r.median(key(row, ours, op), events) / n, most}
	}
	far := func(row string, op operation) target {
		return against(row+", far away", op, stockS3, 1)
	}
	slow := rows[3]
	all := []target{
		against("1000 flat", create, stockS3, 0.10),
		against("1000 flat", destroy, stockS3, 0.10),
		against("1000 flat", noChange, stockFile, 1),
		against("1000 flat", preview, stockFile, 1),
		against("1000 flat", refresh, stockFile, 0.5),
		against("5000 flat", refresh, stockFile, 0.5),
		against("100 flat", create, stockFile, 1),
		against("chain of 100", create, stockFile, 1),
		against("chain of 100", noChange, stockFile, 0.7),
		against("chain of 100", preview, stockFile, 0.7),
		{slow.name + ": T/T_floor", r.median(key(slow.name, ours, create), wall) / r.floor(slow), 1.3},
		perResource("1000 flat", create, 1000, 5),
		perResource("1000 flat", noChange, 1000, 0.3),
		perResource("chain of 100", create, 100, 15),
		perResource("chain of 100", noChange, 100, 12),
		backend("100 flat", create, stockFile, 1),
		backend("1000 flat", create, stockS3, 0.25),
		backend("1000 flat", noChange, stockFile, 1.1),
		backend("1000 flat", preview, stockFile, 1.1),
		backend("chain of 100", create, stockFile, 1.5),
		{"stock CLIs at once, up: p95 / one alone for each core", r.median(crowdRatio, wall), 3},
		{"stock CLIs at once: p50 of a journal's answer, ms", r.median(journalHalf, wall), 5},
		{"stock CLIs at once: p99 of a journal's answer, ms", r.median(journalMost, wall), 50},
		far("10 flat", noChange), far("10 flat", preview), far("10 flat", refresh),
		far("chain of 20", noChange), far("100 flat", noChange),
		{"S3 bytes of a one-resource change: stack of 1000 / stack of 10", r.median(bytesRatio, wall), 3},
		{"peak MiB of a worker apart at 1000 resources", r.median(workerPeak, wall), 400},
		{lookRatio, r.median(lookRatio, wall), 1.15},
	}
	for _, e := range editedProjects {
		all = append(all, target{"deployctl watch, " + e.String(), r.median(e.String(), wall), e.most})
	}
	return all
}

// judge prints the targets and counts those that are missed. What was not measured is not judged.
func (r results) judge() (failed int) {
	fmt.Printf("\n### Targets\n\n| | measured | at most | |\n|---|---|---|---|\n")
	for _, t := range r.targets() {
		verdict := "ok"
		switch {
		case math.IsNaN(t.value):
			verdict = "not measured"
		case t.value > t.most:
			verdict = "MISSED"
			failed++
		}
		fmt.Printf("| %s | %s | %g | %s |\n", t.name, strings.TrimSuffix(fmt.Sprintf("%.2f", t.value), ".00"), t.most,
			verdict)
	}
	return failed
}

// Names of single figures.
const (
	bytesRatio = "bytes ratio"
	workerPeak = "worker peak"
	// of stock CLIs that update at once, see crowd.go
	crowdRatio  = "crowd ratio"
	journalHalf = "journal p50"
	journalMost = "journal p99"
)
