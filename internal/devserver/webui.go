package devserver

import (
	"context"
	"fmt"
	"net/http"

	"github.com/temporalio/ui-server/v2/server"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
)

// startWebUI serves Temporal's Web UI and returns, with what ends it, once it answers. A codec endpoint, if there is one, is
// asked by the user's browser to decode payloads. The port must be free: the UI server ends the process when it is not.
func startWebUI(ctx context.Context, port int, temporalAddress, codec string) (stop func(), err error) {
	ui := server.NewServer(server_options.WithConfigProvider(&config.Config{
		TemporalGRPCAddress: temporalAddress,
		Host:                "127.0.0.1",
		Port:                port,
		EnableUI:            true,
		DefaultNamespace:    Namespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		CORS:                config.CORS{CookieInsecure: true}, // plain HTTP, on loopback
		Codec:               config.Codec{Endpoint: codec, IncludeCredentials: codec != ""},
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = ui.Start() // always nil
	}()
	stop = func() { ui.Stop(); <-ended }
	err = eventually(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address(port)+"/healthz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("it answers %s", response.Status)
		}
		_ = response.Body.Close()
		return err
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("wait for the Web UI: %w", err)
	}
	return stop, nil
}
