// Package guard is what this binary does under another name: it waits for the end of the process that has started it,
// its owner, and then kills the process groups that the owner has left. The kernel itself can end a child together with
// its parent, but not what the child has started: a policy pack or a provider that a language host runs, or a program.
//
// All that happens while the packages of the binary are being initialized; see package launcher about the imports.
package guard

import (
	"bufio"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// Name is the name under which this binary is the guard.
const Name = "deployctl-guard"

// What the owner writes to the guard's standard input about a process group is a line: one of these, and the id of the
// group.
const (
	Added   = '+'
	Removed = '-'
)

func init() {
	if len(os.Args) == 0 || os.Args[0] != Name {
		return
	}
	seclude()
	// It ends with its owner. A terminal, or who stops a service, may send these to every process.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	for id := range left(os.Stdin) {
		kill(id)
	}
	os.Exit(0)
}

// left reads what an owner says until it has ended, and returns the groups that it has left, with how often each was
// added: none if it could not be read to the end, because then the owner may still run.
func left(owner io.Reader) map[int]int {
	groups := map[int]int{}
	lines := bufio.NewScanner(owner)
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			continue
		}
		id, err := strconv.Atoi(line[1:])
		switch {
		case err != nil || id <= 1: // never every process, nor its own group
		case line[0] == Added:
			groups[id]++
		case line[0] == Removed && groups[id] > 1:
			groups[id]--
		case line[0] == Removed:
			delete(groups, id)
		}
	}
	if lines.Err() != nil {
		return nil
	}
	return groups
}
