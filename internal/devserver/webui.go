package devserver

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/deployctl/deployctl/internal/doors"
)

// codecPath is where the user's browser has payloads decoded for the Web UI.
const codecPath = "/codec"

// startWebUI serves Temporal's Web UI behind its gate, and gives what ends it. A codec, if there is one, decodes
// payloads for the user's browser at POST codecPath/decode.
func (s *Server) startWebUI(data data, servers parts.Servers, codec http.Handler) (stop func(), err error) {
	config := parts.WebUI{Temporal: address(data.ports.Temporal), Client: data.identity.client(), Namespace: Namespace}
	if codec != nil {
		config.Codec = uiURL(data.ports) + codecPath
	}
	handler, end, err := servers.WebUI(config)
	if err != nil {
		return nil, fmt.Errorf("set up the Web UI: %w", err)
	}
	gate, err := newGate(data, handler, codec)
	if err != nil {
		end()
		return nil, err
	}
	listener, err := net.Listen("tcp", address(data.ports.UI))
	if err != nil {
		end()
		return nil, err
	}
	server := &http.Server{
		Handler: gate, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		// a handler that panics ends its request, and says so there
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelError),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// A cookie is sent to every port of a host, whoever listens there.
		_ = server.Serve(doors.SameUser(listener)) // ends with Close
		end()
	}()
	return func() { _ = server.Close(); <-ended }, nil
}

func uiURL(p Ports) string { return "http://" + address(p.UI) }
