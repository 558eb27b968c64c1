package porttest

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// only has the kernel choose between one port: the one of the address.
func only(t *testing.T, address string) func(network, address string, c syscall.RawConn) error {
	t.Helper()
	_, text, _ := net.SplitHostPort(address)
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return func(_, _ string, c syscall.RawConn) (err error) {
		ctl := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_LOCAL_PORT_RANGE, port<<16|port)
		})
		return errors.Join(ctl, err)
	}
}

func TestTheKernelGivesAReservedPortToNobody(t *testing.T) {
	address := Address(t)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	choice := only(t, address)
	for _, host := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		config := net.ListenConfig{Control: choice}
		listener, err := config.Listen(context.Background(), "tcp4", host)
		if errors.Is(err, unix.ENOPROTOOPT) {
			t.Skip("the kernel is older than Linux 6.3")
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("it gives %v to a listener on %s: %v", listener, host, err)
		}
	}
	dialer := net.Dialer{Control: choice}
	if conn, err := dialer.Dial("tcp4", server.Addr().String()); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("it gives %v to a client: %v", conn, err)
	}
}

func TestWhoIsToldAReservedPortListensThereAgainAndAgain(t *testing.T) {
	for _, address := range []string{Address(t), Low(t)} {
		listensAgain(t, address)
	}
}

func TestNobodyElseGetsALowPort(t *testing.T) {
	one, another := Low(t), Low(t)
	_, port, _ := net.SplitHostPort(one)
	if n, err := strconv.ParseInt(port, 10, 16); err != nil || n == 0 || one == another {
		t.Errorf("the ports are %s and %s", one, another)
	}
}

func listensAgain(t *testing.T, address string) {
	t.Helper()
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("before: %v", err)
	}
	_, port, _ := net.SplitHostPort(address)
	for _, at := range []string{address, address, "0.0.0.0:" + port, "[::]:" + port} {
		listener, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		client, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = accepted.Close() // first, so that the port is left in TIME_WAIT
		_ = listener.Close()
		_ = client.Close()
	}
}
