package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// tally counts the runs in which a test failed, by package and test.
type tally map[string]int

var (
	failedTest    = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	failedPackage = regexp.MustCompile(`^FAIL\t(\S+)`)
)

// add counts the failures in the log of one run. `go test` prints the tests of a package before the package's own line.
func (t tally) add(log string) {
	seen := map[string]bool{}
	var tests []string
	for line := range strings.Lines(log) {
		if test := failedTest.FindStringSubmatch(line); test != nil {
			tests = append(tests, test[1])
		}
		if pkg := failedPackage.FindStringSubmatch(line); pkg != nil {
			if len(tests) == 0 {
				tests = []string{"(did not build, or ended early)"}
			}
			for _, test := range tests {
				seen[pkg[1]+" "+test] = true
			}
			tests = nil
		}
	}
	for _, test := range tests { // the log ends early
		seen["? "+test] = true
	}
	if len(seen) == 0 {
		seen["(no test failed: see the log)"] = true
	}
	for name := range seen {
		t[name]++
	}
}

// String is a table, those that failed most often first.
func (t tally) String() string {
	names := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b))
	})
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%4d  %s\n", t[name], name)
	}
	return b.String()
}
