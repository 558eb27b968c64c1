// Package snapshot is the state of a stack in the memory of an update: the states of its resources in their order, the
// operations whose outcome is not known, and the names by which resources were known before.
//
// A Snapshot changes by deltas alone, which Apply applies (snapshot.go). Package engine decides on them and records
// each in one place, Run.change; the commit and recovery apply the same deltas to the same base, and get the same
// snapshot. Everything else that others can call reads: the states to which it returns pointers must not be changed.
//
// It knows headers and references to values, as the core does, and nothing of goals, events and steps.
package snapshot
