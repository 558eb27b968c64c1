package pulumiapi

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// inMode reports, as CodeMaintenance, that the service is in a mode in which it does not take a call. A running update
// is not asked: it ends in every mode.
func (c *call) inMode() error {
	if c.route.by != byToken && c.route.by != byIdentity {
		return nil
	}
	work := c.route.does.Work()
	if c.route.onlyWrites && work == deployments.WorkBegins {
		work = deployments.WorkWrites
	}
	return c.edge.refuse(c.Context(), work)
}

func (e *edge) refuse(ctx context.Context, w deployments.Work) error {
	if w == deployments.WorkReads {
		return nil
	}
	m, err := e.Service.Mode(ctx)
	if err != nil {
		return err
	}
	return m.Refuse(w, time.Now())
}
