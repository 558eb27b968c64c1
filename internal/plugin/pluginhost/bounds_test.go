package pluginhost

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// A program opens connections to the monitor or the engine, and does not use them.
func TestConnectionsOfAnUpdateToThisProcessAreBounded(t *testing.T) {
	said := make(chan string, 10)
	h := open(t, Options{Log: func(m Message) { said <- m.Text }})
	h.connections = 3
	listener, err := h.Listen() // as the monitor does
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(ServerOptions(nil)...)
	go func() { _ = server.Serve(listener) }() // ends by Stop
	defer server.Stop()
	address := listener.Addr().String()
	var first net.Conn
	for i := range h.connections {
		conn := connected(t, address)
		if i == 0 {
			first = conn
		}
		if _, err := conn.Read(make([]byte, 1)); err != nil { // the settings of the server
			t.Fatalf("connection %d is not served: %v", i, err)
		}
	}
	if _, err := connected(t, address).Read(make([]byte, 1)); err == nil {
		t.Error("one more is served")
	}
	waittest.For(t, "a warning", said)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the place of one that was closed is free", func() bool {
		_, err := connected(t, address).Read(make([]byte, 1))
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

// dense answers, and is asked, with values that take far more memory than their bytes.
type dense struct {
	pulumirpc.UnimplementedResourceProviderServer
	values *structpb.Struct
	asked  int
}

func (d *dense) Invoke(context.Context, *pulumirpc.InvokeRequest) (*pulumirpc.InvokeResponse, error) {
	d.asked++
	return &pulumirpc.InvokeResponse{Return: d.values}, nil
}

func TestAMessageOfVeryManyValuesIsNotDecoded(t *testing.T) {
	empty, list := structpb.NewListValue(&structpb.ListValue{}), &structpb.ListValue{}
	for range 600_000 { // of two values, in four bytes
		list.Values = append(list.Values, empty)
	}
	many := &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewListValue(list)}}
	list = &structpb.ListValue{Values: list.GetValues()[:400_000]}
	few := &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewListValue(list)}}
	for name, c := range map[string]struct {
		asks, answers *structpb.Struct
		refused       bool
		asked         int
	}{
		"many are answered": {nil, many, true, 1},
		"many are asked":    {many, nil, true, 0},
		"fewer":             {few, few, false, 1},
	} {
		d := &dense{values: c.answers}
		e, err := embed("provider", func(s *grpc.Server) { pulumirpc.RegisterResourceProviderServer(s, d) },
			ServerOptions(nil)...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pulumirpc.NewResourceProviderClient(e.conn).Invoke(t.Context(), &pulumirpc.InvokeRequest{Args: c.asks})
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "values") || d.asked != c.asked {
			t.Errorf("%s: %v, asked %d times", name, err, d.asked)
		}
		e.stop(0)
	}
}
