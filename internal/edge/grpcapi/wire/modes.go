package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// FromMode writes a mode of the service.
func FromMode(m deployments.Mode) *api.Mode {
	return &api.Mode{Kind: string(m.Kind), Reason: m.Reason, By: m.By, Since: fromTime(m.Since), Until: fromTime(m.Until)}
}

// ToMode reads a mode of the service.
func ToMode(m *api.Mode) deployments.Mode {
	return deployments.Mode{Kind: deployments.ModeKind(m.GetKind()), Reason: m.GetReason(), By: m.GetBy(),
		Since: toTime(m.GetSince()), Until: toTime(m.GetUntil())}
}
