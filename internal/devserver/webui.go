package devserver

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/internal/devserver/parts"
)

// uiDomain is that of which each start has a name for its Web UI. Browsers find it on this machine without asking
// anybody.
const uiDomain = ".localhost"

// uiURL is where an instance has its Web UI. What a browser keeps for a name (cookies, storage, scripts that answer in
// the server's place) it keeps for whoever listens there, so no instance uses the name of another.
func uiURL(instance string, p Ports) string {
	return "http://" + net.JoinHostPort(instance+uiDomain, strconv.Itoa(p.UI))
}

// codecPath is where the user's browser has payloads decoded for the Web UI.
const codecPath = "/codec"

// startWebUI serves Temporal's Web UI behind its gate, and gives what ends it. A codec, if there is one, decodes
// payloads for the user's browser at POST codecPath/decode.
func (s *Server) startWebUI(data data, servers parts.Servers, codec http.Handler) (stop func(), err error) {
	config := parts.WebUI{Temporal: address(data.ports.Temporal), Client: data.identity.client(), Namespace: Namespace}
	if codec != nil {
		config.Codec = s.Status.UIURL + codecPath
	}
	handler, end, err := servers.WebUI(config)
	if err != nil {
		return nil, fmt.Errorf("set up the Web UI: %w", err)
	}
	gate, err := newGate(s.Status, data.keys, handler, codec)
	if err != nil {
		end()
		return nil, err
	}
	listener, err := openUI(data.ports.UI)
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
		_ = server.Serve(listener) // ends with Close
		end()
	}()
	return func() { _ = server.Close(); <-ended }, nil
}
