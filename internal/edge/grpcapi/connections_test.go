package grpcapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// small is a listener on loopback for three strangers and three others.
func small(t *testing.T) *limited {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &limited{inner, newPlaces(3), newPlaces(3), newBacklog(mostUnread)}
}

// stranger connects from an address of loopback and returns once the server has accepted it, as its answer to what is
// sent says.
func stranger(t *testing.T, l net.Listener, from, sends string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(waittest.Context(t), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, sends); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// ends waits until the other side has closed a connection.
func ends(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(waittest.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection that was to give way is still open")
	}
}

const hello = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// TestStrangersTakeNoPlaceFromWhomIsKnownNorFromOtherHosts fills both servers with strangers of one host.
func TestStrangersTakeNoPlaceFromWhomIsKnownNorFromOtherHosts(t *testing.T) {
	for name, serve := range map[string]func(*testing.T, net.Listener) (known func() error, sends string){
		"gRPC": servesGRPC, "HTTP": servesHTTP,
	} {
		t.Run(name, func(t *testing.T) {
			l := small(t)
			known, sends := serve(t, l)
			if err := known(); err != nil { // before, its connection is a stranger's
				t.Fatal(err)
			}
			few := stranger(t, l, "127.0.0.2", sends)
			var many []net.Conn
			for range 6 {
				many = append(many, stranger(t, l, "127.0.0.3", sends))
			}
			for _, conn := range many[:4] {
				ends(t, conn)
			}
			if _, err := io.WriteString(few, sends); err != nil {
				t.Errorf("a stranger of another host has given way: %v", err)
			}
			if err := known(); err != nil {
				t.Errorf("whoever has shown a right token: %v", err)
			}
		})
	}
}

func servesGRPC(t *testing.T, l net.Listener) (known func() error, sends string) {
	server, _, err := newServer(t.Context(), Config{Service: memory.New(), Authority: OneToken("local", nil)})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }() // ends with the test
	t.Cleanup(server.Stop)
	lost := make(chan struct{}, 1)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(onlyOnce(lost)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return func() error {
		_, err := api.NewStacksClient(conn).ListStacks(as(waittest.Context(t), "local"), &api.ListStacksRequest{})
		return err
	}, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
}

var errAgain = errors.New("the first connection was lost")

// onlyOnce dials once: a client that has to connect again fails.
func onlyOnce(used chan struct{}) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		select {
		case used <- struct{}{}:
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		default:
			return nil, errAgain
		}
	}
}

func servesHTTP(t *testing.T, l net.Listener) (known func() error, sends string) {
	gate := NewGate(OneToken("local", nil), NewMemory(), nil)
	handler := func(_ http.ResponseWriter, r *http.Request) {
		if text := r.Header.Get("Authorization"); text != "" {
			_, _ = gate.Caller(r.Context(), text, "host")
		}
	}
	server := &http.Server{ConnContext: OnConnection, Handler: http.HandlerFunc(handler)}
	go func() { _ = server.Serve(l) }() // ends with the test
	t.Cleanup(func() { _ = server.Close() })
	once := onlyOnce(make(chan struct{}, 1))
	dial := func(ctx context.Context, _, at string) (net.Conn, error) { return once(ctx, at) }
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	t.Cleanup(client.CloseIdleConnections)
	return func() error {
		r, err := http.NewRequestWithContext(waittest.Context(t), http.MethodGet, "http://"+l.Addr().String(), nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "local")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return errors.Join(err, answer.Body.Close())
	}, hello
}

// TestTheTokenWithTheMostConnectionsGivesWay fills the room of those who are known.
func TestTheTokenWithTheMostConnectionsGivesWay(t *testing.T) {
	l := small(t)
	defer func() { _ = l.Close() }()
	connect := func(token string) (ours, theirs net.Conn) {
		ours, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ours.Close() })
		if theirs, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		theirs.(*connection).isKnown(token)
		return ours, theirs
	}
	few, _ := connect("few")
	oldest, _ := connect("many")
	connect("many")
	connect("many")
	ends(t, oldest)
	_, last := connect("few")
	if _, err := io.WriteString(last, "x"); err != nil {
		t.Error(err)
	}
	if err := few.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := few.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the one that has few has given way: %v", err)
	}
}

func TestAStrangerThatSendsNothingIsGivenUpSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, known := range []bool{false, true} {
			ours, theirs := net.Pipe()
			strangers, knownOnes := newPlaces(ofStrangers), newPlaces(ofKnown)
			c := newConnection(theirs, knownOnes, strangers, newBacklog(mostUnread))
			strangers.enter(c, "host")
			if err := c.SetDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			begun, want := time.Now(), strangerPatience
			if known {
				time.AfterFunc(time.Second, func() { c.isKnown("ann") }) // while it is read
				want = time.Hour
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != want {
				t.Errorf("known %v: after %s: %v", known, time.Since(begun), err)
			}
			_, _ = ours.Close(), c.Close()
			if len(strangers.taken)+len(knownOnes.taken) > 0 {
				t.Error("a closed connection has kept its place")
			}
		}
	})
}
