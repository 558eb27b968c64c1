// Package runlink carries messages between one epoch of a program and the update's Run workflow. Calls are requests of
// the program that the Run replies to; notices are messages without a reply. A Link batches what is waiting into one
// signal at a time, lets polls and activity results carry calls as well, and retransmits what may have been lost; the
// Run puts messages in order and ignores repeats. A step or a plan that knows the reply to a call delivers it at once
// (ReplyEarly), so that the program does not wait for the Run. The package knows Temporal only as the interface Runs,
// which internal/host/runlink/runclient implements.
package runlink
