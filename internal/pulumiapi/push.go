package pulumiapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/gitpush"
	"github.com/deployctl/deployctl/internal/grpcapi"
)

// pushAnswer is what a git server is told; it keeps that for people.
type pushAnswer struct {
	Deployment string `json:"deployment,omitempty"`
	Ignored    string `json:"ignored,omitempty"`
}

// Bounds of messages whose signature cannot be checked before they are read: how many are read at a time, and how long
// each may take.
const (
	readPushes   = 16
	pushPatience = 20 * time.Second
)

// pushed reads the message of a git server.
func (c *call) pushed() ([]byte, error) {
	if !c.edge.pushes.TryAcquire(1) {
		return nil, deployments.Errorf(deployments.CodeUnavailable, "too many messages of git servers arrive at a time: "+
			"send it again")
	}
	defer c.edge.pushes.Release(1)
	err := http.NewResponseController(c.answer).SetReadDeadline(time.Now().Add(pushPatience))
	if err != nil && !errors.Is(err, http.ErrNotSupported) { // the limit of the server then suffices
		return nil, err
	}
	return c.body()
}

// takePush takes a message of a git server. It is authenticated by its signature, not by a token, so the audit log has
// it from here.
func takePush(c *call) (any, error) {
	host := grpcapi.Host(c.RemoteAddr)
	if err := c.edge.gate.Pace(c.Context(), "pushes from "+host); err != nil {
		return nil, err
	}
	if !gitpush.Signed(c.Header) {
		c.edge.gate.Wrong(c.Context(), host)
		return nil, deployments.Errorf(deployments.CodeUnauthorized, "the message of a git server needs a signature: set "+
			"the secret of the webhook there, too")
	}
	body, err := c.pushed()
	if err != nil {
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
