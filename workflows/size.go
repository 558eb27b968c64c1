package workflows

import (
	"unicode/utf8"

	"github.com/deployctl/deployctl/engine"
)

// Sizes are estimates of a value's size as JSON, close enough to keep payloads well below their limit. Values in bags
// are the most of it; the rest of a header counts as a constant.
const (
	headerSize = 1 << 10
	itemSize   = 200
)

func bagSize(b engine.Bag) int { return len(b.Inline) + len(b.Ref) + len(b.Digest) }

func stateSize(s *engine.State) int {
	if s == nil {
		return 0
	}
	names := 0
	for _, u := range s.Dependencies {
		names += len(u)
	}
	for _, p := range s.PropertyDependencies {
		for _, u := range p.URNs {
			names += len(u)
		}
	}
	return headerSize + names + bagSize(s.Inputs) + bagSize(s.Outputs) + bagSize(s.Trigger) +
		bagSize(s.Extension)
}

func replySize(r engine.Reply) int { return itemSize + len(r.URN) + bagSize(r.Object) }

func planSize(p engine.Plan) int {
	n := headerSize + stateSize(p.Old) + bagSize(p.Goal.Inputs) + bagSize(p.Goal.Trigger) +
		bagSize(p.Goal.Extension)
	if p.Provider != nil {
		n += bagSize(p.Provider.Inputs) + bagSize(p.Provider.Extension)
	}
	return n
}

func deltaSize(d engine.Delta) int {
	n := itemSize + stateSize(d.State)
	if d.Pending != nil {
		n += stateSize(&d.Pending.State)
	}
	return n
}

func emitSize(e engine.Emit) int {
	n := itemSize + len(e.Message) + stateSize(e.Old) + stateSize(e.New)
	if e.Remediation != nil {
		n += bagSize(e.Remediation.Before) + bagSize(e.Remediation.After)
	}
	if e.Violation != nil {
		n += len(e.Violation.Message)
	}
	return n
}

// fits returns how many of n items stay within both limits; at least one, if there is one.
func fits(n, items, bytes int, size func(int) int) int {
	total := 0
	for i := range min(n, items) {
		total += size(i)
		if i > 0 && total > bytes {
			return i
		}
	}
	return min(n, items)
}

// clip shortens a text to at most limit bytes of whole characters.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const dots = "…"
	s = s[:limit-len(dots)]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + dots
}
