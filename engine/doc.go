// Package engine is the deterministic core of an update: a single-threaded state machine that is told what happened
// (events) and answers what may start now (commands).
//
// It does no I/O, reads no clock, starts no goroutine and never looks inside a property value: it works on headers
// (State) and on references to immutable bags of values (Bag), and compares their keyed digests. Whatever needs a value
// happens in an activity or in the program's host. The same events in the same order always give the same commands in
// the same order, so a workflow can replay it.
//
// The duties of whoever drives a Run:
//
//   - Pass every event to Handle in the order in which it became known, then call Ready until it answers nothing.
//   - Start every command that Ready returns, exactly once, and pass its completion back as the event of the same Op.
//   - Make the deltas of Deltas durable, in order; they are the difference between the base and the snapshot.
//   - A Run may be put away with Suspend and taken up with Resume only when nothing it issued is in flight.
package engine
