// Package engine is the deterministic core of an update: a single-threaded state machine that takes events (what
// happened) and returns commands (what may start now).
//
// What it works on, the state of the stack, is in package snapshot: it changes by deltas alone, which Run.change
// records.
//
// It does no I/O, reads no clock, starts no goroutine and never looks inside a property value: it works on headers
// (State) and on references to immutable bags of values (Bag), and compares their keyed digests. Whatever needs a value
// happens in an activity or in the program's host. The same events in the same order always lead to the same commands
// in the same order, so a workflow can replay it.
//
// The duties of the driver of a Run:
//
//   - Pass every event to Handle in the order in which it became known, then call Ready until it returns nothing.
//   - Act on the fields of Ready in their order; the comments of the type say what must be durable before what.
//   - Suspend a Run only when no command is in flight and its changes are durable; Resume continues it.
package engine
