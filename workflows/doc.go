// Package workflows executes updates as Temporal workflows: thin loops that pass events to the deterministic core
// (package engine) and start the commands that it returns. They decide nothing about resources themselves.
//
//   - Stack is the lock and the queue of a stack: one update at a time.
//   - Update is one update: it claims a worker, runs the program there, has one Run, and commits.
//   - Run drives the core: messages of the program in, activities out, deltas and events saved beside the loop.
//   - Lease keeps the stack for an update that a client executes: the stock CLI.
//   - Scheduled is one run of a schedule: it submits updates as any client does.
//   - Deployment runs a program from a git repository: it submits updates as any client does.
//   - Notify tells webhooks what has happened.
//
// Activities and other workflows are referred to by the names in package deployments only; nothing here does I/O.
package workflows
