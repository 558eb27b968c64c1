// Package workflows carries updates out as Temporal workflows: thin loops that hand what happened to the deterministic
// core (package engine) and start what it asks for. They decide nothing about resources themselves.
//
//   - Stack is a stack's lock and queue: one update at a time.
//   - Update is one update: it claims a worker, runs the program there, has one Run, and settles.
//   - Run drives the core: messages of the program in, activities out, deltas and events saved on the side.
//   - Scheduled is one run of a schedule: it has updates submitted like everyone else.
//
// Activities and other workflows are known by the names of package deployments only; nothing here does I/O.
package workflows
