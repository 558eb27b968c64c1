package devserver

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/server/rpc"
	"github.com/temporalio/ui-server/v2/ui"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// codecPath is where the user's browser has payloads decoded for the Web UI.
const codecPath = "/codec"

// startWebUI serves Temporal's Web UI behind its gate, and gives what ends it. A codec, if there is one, decodes
// payloads for the user's browser at POST codecPath/decode.
func (s *Server) startWebUI(data data, codec http.Handler) (stop func(), err error) {
	temporal, err := rpc.Dial(address(data.ports.Temporal), data.identity.client())
	if err != nil {
		return nil, fmt.Errorf("set up the Web UI: %w", err)
	}
	handler, err := webUIHandler(data.ports, temporal, codec != nil)
	if err != nil {
		return nil, fmt.Errorf("set up the Web UI: %w", err)
	}
	gate, err := newGate(data, handler, codec)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address(data.ports.UI))
	if err != nil {
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
		_ = server.Serve(sameUser{listener}) // ends with Close
		_ = temporal.Close()
	}()
	return func() { _ = server.Close(); <-ended }, nil
}

// webUIHandler puts Temporal's Web UI together. It has no gate of its own: whoever reaches it acts with the
// connection's identity.
func webUIHandler(ports Ports, temporal *grpc.ClientConn, decodes bool) (http.Handler, error) {
	settings := &config.Config{
		EnableUI:         true,
		DefaultNamespace: Namespace,
		DisableNewsFetch: true,
		HideLogs:         true,
		// What the gate refuses is not offered.
		WorkflowTerminateDisabled: true, WorkflowSignalDisabled: true, WorkflowUpdateDisabled: true,
		WorkflowResetDisabled: true,
		WorkflowPauseDisabled: true, BatchActionsDisabled: true, StartWorkflowDisabled: true,
		ActivityCommandsDisabled: true,
	}
	if decodes {
		settings.Codec = config.Codec{Endpoint: uiURL(ports) + codecPath, IncludeCredentials: true}
	}
	provider, err := config.NewConfigProviderWithRefresh(settings)
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	if assets, err = fs.Sub(assets, "local"); err != nil {
		return nil, err
	}
	e := echo.New()
	v1 := e.Group("/api/v1")
	v1.GET("/settings", api.GetSettings(provider))
	v1.GET(api.WorkflowRawHistoryUrl, api.WorkflowRawHistoryHandler(workflowservice.NewWorkflowServiceClient(temporal)))
	v1.Any("/*", api.TemporalAPIHandler(provider, nil, temporal))
	if err := route.SetUIRoutes(e, "", assets, provider); err != nil {
		return nil, err
	}
	route.SetRenderRoute(e, "/")
	return e, nil
}

func uiURL(p Ports) string { return "http://" + address(p.UI) }
