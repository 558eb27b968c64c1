// Package peertest finds the real peers of tests: the stock CLI and its language hosts, which tools/peers/build builds.
// It is a package because tests of several packages need it, and say the same when a peer is missing.
package peertest

import (
	"os/exec"
	"testing"
)

// Path is the path of a peer. A test that needs one is not played with -short, as by make check; otherwise it fails
// without the peer, so that it is not left out by mistake.
func Path(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skipf("needs %s; make test plays it", name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not on PATH: put the directory there that tools/peers/build prints, as make test does", name)
	}
	return path
}
