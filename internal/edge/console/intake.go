package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// What a log says may come from a client or a program, which can make any part of an event as large as the event may
// be. These bound what is looked at, so that the work for an event does not grow faster than the event.
const (
	mostPaths = 100     // of the diff of a step, and of what it hides
	mostName  = 2 << 10 // bytes of a URN, a name, a type
	mostPacks = 100     // policy packs
	mostText  = 2 * messageText
)

// severities are those that messages have; another one is shown as the first.
var severities = []string{"info", "info#err", "warning", "error", "debug"}

// cut returns an event without what pages do not show of it; nil if its names are too long to be anything's.
func cut(e *apitype.EngineEvent) *apitype.EngineEvent {
	out := *e
	named := true
	if e.DiagnosticEvent != nil {
		d := *e.DiagnosticEvent
		d.Message, d.Prefix = cutText(d.Message, mostText), cutText(d.Prefix, mostName)
		if !slices.Contains(severities, d.Severity) {
			d.Severity = severities[0]
		}
		out.DiagnosticEvent, named = &d, named && !tooLong(d.URN)
	}
	if e.ErrorEvent != nil {
		out.ErrorEvent = &apitype.ErrorEvent{Error: cutText(e.ErrorEvent.Error, mostText)}
	}
	if e.PolicyEvent != nil {
		p := *e.PolicyEvent
		p.Message = cutText(p.Message, mostText)
		out.PolicyEvent, named = &p, named && !tooLong(p.ResourceURN, p.PolicyName, p.PolicyPackName, p.PolicyPackVersion,
			p.PolicyPackVersionTag, p.EnforcementLevel, p.Severity)
	}
	if e.PolicyRemediationEvent != nil {
		p := *e.PolicyRemediationEvent
		p.Before, p.After = nil, nil
		out.PolicyRemediationEvent, named = &p, named && !tooLong(p.ResourceURN, p.PolicyName, p.PolicyPackName,
			p.PolicyPackVersion, p.PolicyPackVersionTag)
	}
	if e.SummaryEvent != nil {
		out.SummaryEvent = cutSummary(*e.SummaryEvent)
	}
	if m := metadataOf(e); m != nil {
		cutStep(&out, *m)
		named = named && !tooLong(m.URN, m.Type, string(m.Op), m.Provider)
	}
	if !named {
		return nil
	}
	return &out
}

func cutSummary(s apitype.SummaryEvent) *apitype.SummaryEvent {
	packs := s.PolicyPacks
	s.PolicyPacks = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(packs)) {
		if version := packs[name]; len(s.PolicyPacks) < mostPacks && !tooLong(name, version) {
			s.PolicyPacks[name] = version
		}
	}
	return &s
}

// cutStep is cut of the one event of a step that metadataOf finds.
func cutStep(e *apitype.EngineEvent, step apitype.StepEventMetadata) {
	if all := step.DetailedDiff; len(all) > mostPaths {
		step.DetailedDiff = map[string]apitype.PropertyDiff{}
		for _, path := range slices.Sorted(maps.Keys(all))[:mostPaths] {
			step.DetailedDiff[path] = all[path]
		}
	}
	step.Keys, step.Diffs = step.Keys[:min(len(step.Keys), mostPaths)], step.Diffs[:min(len(step.Diffs), mostPaths)]
	step.Old, step.New = cutState(step.Old), cutState(step.New)
	before, after, failed := e.ResourcePreEvent, e.ResOutputsEvent, e.ResOpFailedEvent
	e.ResourcePreEvent, e.ResOutputsEvent, e.ResOpFailedEvent = nil, nil, nil
	switch {
	case before != nil:
		e.ResourcePreEvent = &apitype.ResourcePreEvent{Metadata: step, Planning: before.Planning}
	case after != nil:
		e.ResOutputsEvent = &apitype.ResOutputsEvent{Metadata: step, Planning: after.Planning}
	default:
		f := *failed
		f.Metadata = step
		e.ResOpFailedEvent = &f
	}
}

// cutState returns what a step says of a resource. Of one that hides more than can be looked at, or whose parent is
// named by no name, nothing is shown.
func cutState(s *apitype.StepEventStateMetadata) *apitype.StepEventStateMetadata {
	if s == nil || len(s.HideDiffs) <= mostPaths && !tooLong(s.URN, s.Type, s.Parent, s.ID) {
		return s
	}
	return &apitype.StepEventStateMetadata{Custom: s.Custom}
}

// tooLong reports whether one of several names is too long to be kept.
func tooLong(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return len(name) > mostName })
}

// cutText returns the begin of a text that is longer than a bound.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d more bytes)", strings.ToValidUTF8(text[:most], ""), len(text)-most)
}
