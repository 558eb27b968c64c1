package grpcapi

import (
	"context"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

// inModes says what becomes of a call that changes or uploads something while the service is in a mode.
type inModes int

const (
	// writes: it is refused in read-only mode.
	writes inModes = iota
	// begins: it is refused in maintenance, too.
	begins
	// goesOn: it is taken, because what runs needs it to end, or because it ends the mode.
	goesOn
)

// work returns what a call is to a mode of the service.
func (r rule) work() deployments.Work {
	switch {
	case r.does != changes && r.does != uploads, r.modes == goesOn:
		return deployments.WorkReads
	case r.modes == begins:
		return deployments.WorkBegins
	}
	return deployments.WorkWrites
}

// Work returns what a call of the method is to a mode of the service.
func (r Rule) Work() deployments.Work { return r.rule.work() }

// inMode reports, as CodeMaintenance, that the service is in a mode in which it does not take a call.
func (e *edge) inMode(ctx context.Context, w deployments.Work) error {
	if e.mode == nil || w == deployments.WorkReads {
		return nil
	}
	m, err := e.mode(ctx)
	if err != nil {
		return err
	}
	return m.Refuse(w, time.Now())
}

// expectMode looks for the mode that inMode asks for while the caller is looked up: also for a call that reads, because
// one that changes something often follows it. There is one look at a time, and none while the mode is known.
func (e *edge) expectMode(ctx context.Context) {
	if e.mode == nil {
		return
	}
	go func() {
		_ = panics.Do("looking for the mode of the service", func() error {
			_, err := e.mode(ctx)
			return err
		})
	}()
}

// operates reports, as CodeForbidden, that the caller is no operator of the service, who administers all organizations.
func (a Administered) operates(what string) error {
	if a.whole(deployments.AnyOrganization) {
		return nil
	}
	return deployments.Errorf(deployments.CodeForbidden, "%s concerns the whole service: an admin of all organizations "+
		"can do it (a token of `deployctl token create NAME --role admin --organization '*'`)", what)
}

// SetMode puts the service into a mode in the caller's name, or ends it.
func (a Administered) SetMode(ctx context.Context, m deployments.Mode) error {
	if err := a.operates("a mode"); err != nil {
		return err
	}
	if m.Kind != "" {
		m.By = a.Caller.Name()
	}
	return a.Service.SetMode(ctx, m)
}

type modes struct {
	api.UnsafeModesServer // a method without a handler does not compile
	service               Service
}

func (s *modes) GetMode(ctx context.Context, _ *api.GetModeRequest) (*api.GetModeResponse, error) {
	m, err := s.service.Mode(ctx)
	return &api.GetModeResponse{Mode: wire.FromMode(m)}, err
}

func (s *modes) SetMode(ctx context.Context, m *api.SetModeRequest) (*api.SetModeResponse, error) {
	of := Administered{s.service, callerOf(ctx)}
	return &api.SetModeResponse{}, of.SetMode(ctx, wire.ToMode(m.GetMode()))
}
