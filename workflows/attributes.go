package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
)

var (
	orgKey       = temporal.NewSearchAttributeKeyKeyword(deployments.AttributeOrg)
	projectKey   = temporal.NewSearchAttributeKeyKeyword(deployments.AttributeProject)
	stackKey     = temporal.NewSearchAttributeKeyKeyword(deployments.AttributeStack)
	kindKey      = temporal.NewSearchAttributeKeyKeyword(deployments.AttributeKind)
	resultKey    = temporal.NewSearchAttributeKeyKeyword(deployments.AttributeResult)
	initiatorKey = temporal.NewSearchAttributeKeyKeyword(deployments.AttributeInitiator)
	driftKey     = temporal.NewSearchAttributeKeyKeyword(deployments.AttributeDrift)
)

// background is the priority of work that nobody waits for; everything else has the server's default, which goes first.
const background = 4

// maxFairnessKey is the largest fairness key that Temporal accepts, in bytes.
const maxFairnessKey = 64

// StackAttributes returns the search attributes of a Stack workflow.
func StackAttributes(s deployments.StackName) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		orgKey.ValueSet(s.Organization), projectKey.ValueSet(s.Project), stackKey.ValueSet(s.Stack))
}

// SearchAttributes returns the search attributes of an Update workflow and of its Run.
func SearchAttributes(u deployments.UpdateName, r deployments.UpdateRequest) temporal.SearchAttributes {
	set := []temporal.SearchAttributeUpdate{
		orgKey.ValueSet(u.Organization), projectKey.ValueSet(u.Project), stackKey.ValueSet(u.Stack),
		kindKey.ValueSet(kind(r)),
	}
	if r.Initiator != "" {
		set = append(set, initiatorKey.ValueSet(r.Initiator))
	}
	return temporal.NewSearchAttributes(set...)
}

// ScheduleAttributes returns the search attributes of a schedule and of each of its runs.
func ScheduleAttributes(s deployments.Schedule) temporal.SearchAttributes {
	n := s.Name
	set := []temporal.SearchAttributeUpdate{
		orgKey.ValueSet(n.Organization), projectKey.ValueSet(n.Project), stackKey.ValueSet(n.Stack),
		kindKey.ValueSet(string(s.Kind)),
	}
	if s.Initiator != "" {
		set = append(set, initiatorKey.ValueSet(s.Initiator))
	}
	return temporal.NewSearchAttributes(set...)
}

// DeploymentAttributes returns the search attributes of a Deployment workflow.
func DeploymentAttributes(d deployments.Deployment) temporal.SearchAttributes {
	n := d.Name
	set := []temporal.SearchAttributeUpdate{
		orgKey.ValueSet(n.Organization), projectKey.ValueSet(n.Project), stackKey.ValueSet(n.Stack),
		kindKey.ValueSet(string(d.Operation)),
	}
	if d.RequestedBy != "" {
		set = append(set, initiatorKey.ValueSet(d.RequestedBy))
	}
	return temporal.NewSearchAttributes(set...)
}

// Priority returns the priority of an organization's workflow and of all its activities. Of the tasks with one priority
// the server takes those of each organization in turn: a backlog of one does not hold up the others.
func Priority(organization string, scheduled bool) temporal.Priority {
	p := temporal.Priority{FairnessKey: organization}
	if len(p.FairnessKey) > maxFairnessKey {
		sum := sha256.Sum256([]byte(organization))
		p.FairnessKey = hex.EncodeToString(sum[:])
	}
	if scheduled {
		p.PriorityKey = background
	}
	return p
}

// Summary describes an update in one line.
func Summary(u deployments.UpdateName, r deployments.UpdateRequest) string {
	s := fmt.Sprintf("%s %s/%s, version %s", kind(r), u.Project, u.Stack, u.Version)
	if r.Message != "" {
		s += ": " + r.Message
	}
	return s
}

// kind returns the name of the command that asks for such an update.
func kind(r deployments.UpdateRequest) string {
	if r.DryRun {
		return "preview"
	}
	return string(r.Kind)
}
