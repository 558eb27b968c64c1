package pulumiapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/service/gitpush"
)

// pushAnswer is what a git server is told; it keeps that for people.
type pushAnswer struct {
	Deployment string `json:"deployment,omitempty"`
	Ignored    string `json:"ignored,omitempty"`
}

// Bounds of messages whose signature cannot be checked before they are read. Whether the sender of one has the secret
// is known when it is whole, so each host has its share.
const (
	// pushMemory is what all of them take at a time.
	pushMemory = 64 << 20
	// placePatience is how long one waits for memory, pushPatience how long it may take in all. GitHub and GitLab give up
	// after ten seconds.
	placePatience, pushPatience = 5 * time.Second, 10 * time.Second
)

// pushed reads the message of a git server; checked gives its memory back.
func (c *call) pushed() (body []byte, checked func(), err error) {
	if err := c.readWithin(pushPatience); err != nil {
		return nil, nil, err
	}
	c.claim(c.edge.pushes, grpcapi.Party(c.RemoteAddr), placePatience)
	if body, err = c.text(); err != nil {
		c.memory.Release()
		return nil, nil, err
	}
	_ = http.NewResponseController(c.answer).SetReadDeadline(time.Time{}) // else what follows ends with it
	return body, c.memory.Release, nil
}

// readWithin bounds how long the body of a call may take to arrive.
func (c *call) readWithin(d time.Duration) error {
	err := http.NewResponseController(c.answer).SetReadDeadline(time.Now().Add(d))
	if errors.Is(err, http.ErrNotSupported) {
		return nil // the limit of the server suffices
	}
	return err
}

// refusePush reports, slowly, why a message of a git server is refused by its headers alone.
func (c *call) refusePush(host string) error {
	var err error
	switch {
	case !gitpush.Signed(c.Header):
		err = deployments.Errorf(deployments.CodeUnauthorized, "the message of a git server needs a signature: set the "+
			"secret of the webhook there, too")
	case gitpush.Kind(c.Header) == "":
		err = deployments.Errorf(deployments.CodeInvalid, "the message of a git server needs a header X-GitHub-Event or "+
			"X-Gitlab-Event")
	default:
		return nil
	}
	c.edge.gate.Wrong(c.Context(), host)
	return err
}

// takePush takes a message of a git server. It is authenticated by its signature, not by a token, so the audit log has
// it from here.
func takePush(c *call) (any, error) {
	host := grpcapi.Host(c.RemoteAddr)
	if err := c.readWithin(pushPatience); err != nil { // also of what is refused
		return nil, err
	}
	if err := c.edge.gate.Pace(c.Context(), "pushes from "+host); err != nil {
		return nil, err
	}
	if err := c.refusePush(host); err != nil {
		return nil, err
	}
	// In maintenance the deployment is recorded, and waits. In read-only mode the git server keeps the message.
	if err := c.edge.refuse(c.Context(), deployments.WorkWrites); err != nil {
		return nil, err
	}
	var unread error
	read := false
	d, why, err := c.edge.Service.Push(c.Context(), c.stack, c.Header, func() (body []byte, checked func(), err error) {
		body, free, err := c.pushed()
		unread = err
		return body, func() { read = true; free() }, err
	})
	if unread != nil {
		return nil, unread
	}
	if deployments.CodeOf(err) == deployments.CodeUnauthorized {
		c.edge.gate.Wrong(c.Context(), host)
	}
	if err != nil {
		c.entry.Code, c.entry.Error = deployments.CodeOf(err), err.Error()
	}
	if err == nil {
		c.edge.gate.Known(c.Context(), "pushes to "+c.stack.String())
	}
	if d.Name.Number > 0 {
		c.entry.Subject = "deployment=" + strconv.Itoa(d.Name.Number) + " by " + d.Initiator
	}
	if c.edge.Auditor != nil && why == "" {
		c.entry.Method = "Deployments/Push"
		c.entry.Refused = err != nil && (!read || deployments.CodeOf(err) == deployments.CodeUnauthorized)
		c.entry.Cut()
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
