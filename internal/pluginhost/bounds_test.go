package pluginhost

import (
	"context"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/deployctl/deployctl/internal/pluginprotocol"
	"github.com/deployctl/deployctl/internal/waittest"
)

// A program opens connections to the monitor or the engine, and does not use them.
func TestConnectionsOfAnUpdateToThisProcessAreBounded(t *testing.T) {
	said := make(chan string, 10)
	h := open(t, Options{Log: func(m Message) { said <- m.Text }})
	defer h.Close(t.Context())
	var first net.Conn
	for i := range mostConnections {
		conn := connected(t, h.Address())
		if i == 0 {
			first = conn
		}
		readByte(t, conn, nil) // the settings of the server: it is served
	}
	readByte(t, connected(t, h.Address()), io.EOF)
	waittest.For(t, "a warning", said)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the place of one that was closed is free", func() bool {
		conn := connected(t, h.Address())
		_, err := conn.Read(make([]byte, 1))
		return err == nil
	})
}

// connected opens a connection and sends what a client of HTTP/2 begins with.
func connected(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = http2.NewFramer(conn, nil).WriteSettings()
	return conn
}

func readByte(t *testing.T, conn net.Conn, want error) {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	if want == nil && err != nil || want != nil && err == nil {
		t.Fatalf("reading: %v, not %v", err, want)
	}
}

// A program begins calls and sends no request.
func TestCallsOfAnUpdateToThisProcessAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(ServerOptions(nil)...)
	go func() { _ = server.Serve(listener) }() // ends by Stop
	defer server.Stop()
	framer := http2.NewFramer(io.Discard, connected(t, listener.Addr().String()))
	frame, err := framer.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	streams, _ := frame.(*http2.SettingsFrame).Value(http2.SettingMaxConcurrentStreams)
	if streams != pluginprotocol.MaxStreams {
		t.Errorf("a connection has %d streams", streams)
	}

	calls := &openCalls{most: 2}
	first, end := context.WithCancel(t.Context())
	for i, ctx := range []context.Context{first, t.Context(), t.Context()} {
		if _, err := calls.admit(ctx, nil); (status.Code(err) == codes.ResourceExhausted) != (i == 2) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	end()
	waittest.Until(t, "the place of a call that has ended is free", func() bool {
		_, err := calls.admit(t.Context(), nil)
		return err == nil
	})
}
