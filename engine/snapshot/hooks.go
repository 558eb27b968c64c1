package snapshot

import (
	"maps"
	"slices"
)

// HookPoint says when a hook runs, in the words of the stored format.
type HookPoint string

// The points at which hooks run.
const (
	BeforeCreate HookPoint = "BeforeCreate"
	AfterCreate  HookPoint = "AfterCreate"
	BeforeUpdate HookPoint = "BeforeUpdate"
	AfterUpdate  HookPoint = "AfterUpdate"
	BeforeDelete HookPoint = "BeforeDelete"
	AfterDelete  HookPoint = "AfterDelete"
	OnError      HookPoint = "OnError"
)

// Hooks are the names of a resource's hooks, by the point at which they run, in order.
type Hooks map[HookPoint][]string

// equal reports that the same hooks run at the same points. The order in which it compares has no effect.
func (h Hooks) equal(o Hooks) bool {
	//workflowcheck:ignore the order of the comparisons has no effect
	return maps.EqualFunc(h, o, slices.Equal[[]string])
}
