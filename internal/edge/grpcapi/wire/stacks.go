package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// FromStackInfo writes what is known of a stack.
func FromStackInfo(s deployments.StackInfo) *api.StackInfo {
	return &api.StackInfo{
		Stack: FromStack(s.Stack), Version: int64(s.Version), Updated: fromTime(s.Updated),
		Resources: int64(s.Resources), Pending: int64(s.Pending), Identity: s.Identity,
		Active: fromInfoPointer(s.Active), Queued: FromInfos(s.Queued), Tags: s.Tags, Damaged: s.Damaged,
	}
}

// ToStackInfo reads what is known of a stack.
func ToStackInfo(m *api.StackInfo) deployments.StackInfo {
	return deployments.StackInfo{
		Stack: ToStack(m.GetStack()), Version: int(m.GetVersion()), Updated: toTime(m.GetUpdated()),
		Resources: int(m.GetResources()), Pending: int(m.GetPending()), Identity: m.GetIdentity(),
		Active: toInfoPointer(m.GetActive()), Queued: ToInfos(m.GetQueued()), Tags: m.GetTags(),
		Damaged: m.GetDamaged(),
	}
}

// FromStackInfos and the functions after it translate lists.
func FromStackInfos(list []deployments.StackInfo) []*api.StackInfo { return each(list, FromStackInfo) }

// ToStackInfos reads a list of stacks.
func ToStackInfos(list []*api.StackInfo) []deployments.StackInfo { return each(list, ToStackInfo) }

// FromInfos writes a list of updates.
func FromInfos(list []deployments.UpdateInfo) []*api.UpdateInfo { return each(list, FromInfo) }

// ToInfos reads a list of updates.
func ToInfos(list []*api.UpdateInfo) []deployments.UpdateInfo { return each(list, ToInfo) }

// FromManifest writes a bundle's manifest.
func FromManifest(m deployments.Manifest) *api.Manifest {
	return &api.Manifest{Dir: m.Dir, Files: each(m.Files, func(f deployments.File) *api.File {
		return &api.File{Path: f.Path, Digest: f.Digest, Mode: f.Mode, Size: f.Size}
	})}
}

// ToManifest reads a bundle's manifest.
func ToManifest(m *api.Manifest) deployments.Manifest {
	return deployments.Manifest{Dir: m.GetDir(), Files: each(m.GetFiles(), func(f *api.File) deployments.File {
		return deployments.File{Path: f.GetPath(), Digest: f.GetDigest(), Mode: f.GetMode(), Size: f.GetSize()}
	})}
}
