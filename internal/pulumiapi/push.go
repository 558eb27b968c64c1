package pulumiapi

import (
	"context"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/gitpush"
	"github.com/deployctl/deployctl/internal/grpcapi"
)

// pushAnswer is what a git server is told; it keeps that for people.
type pushAnswer struct {
	Deployment string `json:"deployment,omitempty"`
	Ignored    string `json:"ignored,omitempty"`
}

// takePush takes a message of a git server. It is authenticated by its signature, not by a token, so the audit log has
// it from here.
func takePush(c *call) (any, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	host := grpcapi.Host(c.RemoteAddr)
	if err := c.edge.gate.Pace(c.Context(), "pushes to "+c.stack.String()); err != nil {
		return nil, err
	}
	d, why, err := c.edge.Service.Push(c.Context(), c.stack, gitpush.Message{Header: c.Header, Body: body})
	if deployments.CodeOf(err) == deployments.CodeUnauthorized {
		c.edge.gate.Wrong(c.Context(), host)
	}
	if err != nil {
		c.entry.Code, c.entry.Error = deployments.CodeOf(err), err.Error()
	}
	if d.Name.Number > 0 {
		c.entry.Subject = "deployment=" + strconv.Itoa(d.Name.Number) + " by " + d.Initiator
	}
	if c.edge.Auditor != nil && why == "" {
		c.entry.Method = "Deployments/Push"
		if unwritten := c.edge.Auditor.Record(context.WithoutCancel(c.Context()), c.entry, err == nil); unwritten != nil {
			c.edge.Log.Error("audit entry was not written", "entry", c.entry, "error", unwritten)
		}
	}
	if err != nil {
		return nil, err
	}
	answer := pushAnswer{Ignored: why}
	if why == "" {
		answer.Deployment = d.Name.ID()
	}
	return answer, nil
}
