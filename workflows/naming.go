package workflows

import (
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

// background is the priority of what nobody waits for. Everything else has the server's default, which goes before it.
const background = 4

// StackAttributes are what a Stack workflow is found by.
func StackAttributes(s deployments.StackName) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		orgKey.ValueSet(s.Organization), projectKey.ValueSet(s.Project), stackKey.ValueSet(s.Stack))
}

// SearchAttributes are what an Update workflow, or its Run, is found by.
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

// ScheduleAttributes are what a schedule, and each of its runs, is found by.
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

// Priority is an update's: all that it does has the same.
func Priority(scheduled bool) temporal.Priority {
	if scheduled {
		return temporal.Priority{PriorityKey: background}
	}
	return temporal.Priority{}
}

// Summary says in a line what an update is.
func Summary(u deployments.UpdateName, r deployments.UpdateRequest) string {
	s := fmt.Sprintf("%s %s/%s, version %s", kind(r), u.Project, u.Stack, u.Version)
	if r.Message != "" {
		s += ": " + r.Message
	}
	return s
}

// kind names what is asked for as its command does.
func kind(r deployments.UpdateRequest) string {
	if r.DryRun {
		return "preview"
	}
	return string(r.Kind)
}
