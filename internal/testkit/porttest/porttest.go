// Package porttest gives tests addresses for processes that are told where to listen. A test that looked for a free
// port and told a process would race with everybody else: the port is free until the process has started, and again
// while it is restarted.
package porttest

import (
	"io"
	"testing"
)

// Address is one on loopback that is the test's until it ends: nobody listens on it but whom the test tells.
func Address(t testing.TB) string {
	t.Helper()
	return until(t, Reserve)
}

// Low is Address for a server that takes a port for a number of 15 bits, such as Temporal's with PostgreSQL's smallint.
func Low(t testing.TB) string {
	t.Helper()
	return until(t, reserveLow)
}

// The ports of Low are below those that kernels choose.
const lowestLow, highestLow = 1 << 14, 1<<15 - 1

// until reserves an address until the test ends.
func until(t testing.TB, reserve func() (string, io.Closer, error)) string {
	t.Helper()
	address, reservation, err := reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reservation.Close() })
	return address
}

// Reserve is Address for programs that test without a testing.TB: the address is theirs until the reservation is
// closed, or the process ends.
func Reserve() (address string, reservation io.Closer, err error) { return reserve() }
