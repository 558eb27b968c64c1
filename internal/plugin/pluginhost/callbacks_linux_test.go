package pluginhost

import (
	"net"
	"strings"
	"testing"
)

// TestFunctionsAreCalledInProcessesOfTheUpdateAlone names addresses as a program may: of another machine, of a port
// that nobody listens on, and of one that belongs to another process, which is sent nothing.
func TestFunctionsAreCalledInProcessesOfTheUpdateAlone(t *testing.T) {
	host, err := New(Options{RootDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close(t.Context())
	foreign, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.Close() }()
	got := make(chan int, 1)
	go func() {
		n := 0
		if conn, err := foreign.Accept(); err == nil {
			n, _ = conn.Read(make([]byte, 1)) // until it is closed
		}
		got <- n
	}()
	for target, want := range map[string]string{
		"":                      "are called at 127.0.0.1:PORT only",
		"example.com:443":       "are called at 127.0.0.1:PORT only",
		"unix:///run/docker":    "are called at 127.0.0.1:PORT only",
		"127.0.0.1:0":           "are called at 127.0.0.1:PORT only",
		"127.0.0.1:1":           "connection refused",
		foreign.Addr().String(): "none of its processes listens on port",
	} {
		if _, err := host.Callbacks(t.Context(), target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", target, err)
		}
	}
	if n := <-got; n > 0 {
		t.Error("another process was sent something")
	}
}
