package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// metrics are the labels of each series that Prometheus may have, by its name.
type metrics map[string][]string

// every are the labels that Prometheus adds to each series.
var every = []string{"job", "instance"}

// others are metrics that deployctl does not count itself, and that may be used: of Prometheus, and of every Go process.
var others = metrics{
	"up": every, "process_cpu_seconds_total": every, "process_resident_memory_bytes": every, "go_goroutines": every,
}

var (
	row    = regexp.MustCompile("(?m)^\\| `(deployctl_[a-z0-9_]+)` \\| ([a-z]+) \\|([^|]*)\\|")
	quoted = regexp.MustCompile("`([^`]+)`")
)

// listed reads the table of metrics of a page.
func listed(page string) (metrics, error) {
	known := metrics{}
	for name, labels := range others {
		known[name] = labels
	}
	rows := row.FindAllStringSubmatch(page, -1)
	if len(rows) < 20 {
		return nil, fmt.Errorf("the page lists only %d metrics", len(rows))
	}
	for _, r := range rows {
		name, labels := r[1], slices.Clone(every)
		for _, l := range quoted.FindAllStringSubmatch(r[3], -1) {
			labels = append(labels, l[1])
		}
		switch r[2] {
		case "counter", "gauge":
			known[name] = labels
		case "histogram":
			known[name+"_sum"], known[name+"_count"] = labels, labels
			known[name+"_bucket"] = append(slices.Clone(labels), "le")
		default:
			return nil, fmt.Errorf("%s is of the unknown type %s", name, r[2])
		}
	}
	return known, nil
}

// allowed joins labels for a message.
func allowed(labels []string) string { return strings.Join(labels, ", ") }
