package grpcapi

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
)

// portOf is a port that nobody else gets.
func portOf(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(porttest.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// hasIPv6 reports whether the machine has a loopback address of IPv6.
func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

func TestLocalhostIsOpenedAtBothOfItsAddresses(t *testing.T) {
	port := portOf(t)
	l, err := Open("localhost:" + port)
	if err != nil {
		t.Fatal(err)
	}
	var heard []string
	for _, host := range []string{"127.0.0.1", "::1"} {
		if host == "::1" && !hasIPv6() {
			continue
		}
		conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, accepted.LocalAddr().String())
		_, _ = conn.Close(), accepted.Close()
		if other, err := net.Listen("tcp", net.JoinHostPort(host, port)); err == nil {
			_ = other.Close()
			t.Errorf("somebody else can listen on %s", host)
		}
	}
	if want := "127.0.0.1:" + port; !slices.Contains(heard, want) {
		t.Errorf("it hears %v", heard)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its end it gives %v", err)
	}
	if again, err := Open("localhost:" + port); err != nil {
		t.Errorf("an address stays open: %v", err)
	} else {
		_ = again.Close()
	}
}

func TestLocalhostIsNotOpenedIfSomebodyElseHasOneOfItsAddresses(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		if host == "::1" && !hasIPv6() {
			continue
		}
		port := portOf(t)
		other, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(err)
		}
		if l, err := Open("localhost:" + port); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("with %s taken: %v, %v", host, l, err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		l, err := Open("localhost:" + port)
		if err != nil {
			t.Errorf("with %s free again: %v", host, err)
			continue
		}
		_ = l.Close()
	}
}
