package servers

import (
	"io/fs"
	"net/http"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/labstack/echo/v4"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/server/rpc"
	"github.com/temporalio/ui-server/v2/ui"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// WebUI implements parts.Servers.
func (All) WebUI(w parts.WebUI) (handler http.Handler, end func(), err error) {
	temporal, err := rpc.Dial(w.Temporal, w.Client)
	if err != nil {
		return nil, nil, err
	}
	end = func() { _ = temporal.Close() }
	if handler, err = webUIHandler(w, temporal); err != nil {
		end()
		return nil, nil, err
	}
	return handler, end, nil
}

// webUIHandler puts Temporal's Web UI together.
func webUIHandler(w parts.WebUI, temporal *grpc.ClientConn) (http.Handler, error) {
	settings := &config.Config{
		EnableUI:         true,
		DefaultNamespace: w.Namespace,
		DisableNewsFetch: true,
		HideLogs:         true,
		// What the gate refuses is not offered.
		WorkflowTerminateDisabled: true, WorkflowSignalDisabled: true, WorkflowUpdateDisabled: true,
		WorkflowResetDisabled: true,
		WorkflowPauseDisabled: true, BatchActionsDisabled: true, StartWorkflowDisabled: true,
		ActivityCommandsDisabled: true,
	}
	if w.Codec != "" {
		settings.Codec = config.Codec{Endpoint: w.Codec, IncludeCredentials: true}
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
