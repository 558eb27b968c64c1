package doors

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"testing"
)

// greeting connects by Dialer and returns the line that it receives.
func greeting(t *testing.T, address string) (string, error) {
	t.Helper()
	conn, err := Dialer(net.Dialer{})(context.Background(), "tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	line, err := bufio.NewReader(conn).ReadString('\n')
	return line, err
}

func TestAServerIsTalkedToIfItIsThisUsers(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		port := heard(t, process(t, "listen "+net.JoinHostPort(host, "0"), 0), nil)
		if line, err := greeting(t, net.JoinHostPort(host, port)); err != nil || line != "hello\n" {
			t.Errorf("at %s it says %q, %v", host, line, err)
		}
	}
}

func TestAServerOfAnotherUserIsSentNothing(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		port := heard(t, process(t, "listen "+at, 54321), nil)
		for _, host := range []string{"127.0.0.1", "::1"} {
			line, err := greeting(t, net.JoinHostPort(host, port))
			if other := (*ServerError)(nil); !errors.As(err, &other) && !errors.As(err, new(*net.OpError)) ||
				other != nil && other.UID != 54321 {
				t.Errorf("at %s:%s, where another user listens at %s: %q, %v", host, port, at, line, err)
			}
		}
	}
}

// TestItIsNotKnownWhoServesBeforeTheConnectionIsAccepted has a server that accepts nothing.
func TestItIsNotKnownWhoServesBeforeTheConnectionIsAccepted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if other := (*ServerError)(nil); !errors.As(servedByThisUser(ctx, conn), &other) || other.UID != -1 {
		t.Errorf("before: %v", other)
	}
	if accepted, err := l.Accept(); err != nil {
		t.Error(err)
	} else {
		defer func() { _ = accepted.Close() }()
	}
	if err := servedByThisUser(ctx, conn); err != nil {
		t.Errorf("after: %v", err)
	}
}

func TestWhoListensOnAPortIsKnown(t *testing.T) {
	for _, uid := range []uint32{0, 54321} {
		port := heard(t, process(t, "listen [::1]:0", uid), nil)
		number, err := net.LookupPort("tcp", port)
		if err != nil {
			t.Fatal(err)
		}
		want := []int{int(uid)}
		if uid == 0 {
			want[0] = os.Geteuid()
		}
		if uids, known := Holders(number); !known || !slices.Equal(uids, want) {
			t.Errorf("%v listen, not %v", uids, want)
		}
	}
}

func TestAnotherUsersConnectionIsClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	guarded := SameUser(l)
	go func() {
		for {
			conn, err := guarded.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("hello\n")) // the client may have gone
			_ = conn.Close()
		}
	}()
	if got := heard(t, process(t, l.Addr().String(), 54321), nil); got != "" {
		t.Errorf("another user hears %q", got)
	}
	if got := heard(t, process(t, l.Addr().String(), 0), nil); got != "hello" {
		t.Errorf("this user hears %q", got)
	}
}
