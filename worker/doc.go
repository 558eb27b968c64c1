// Package worker connects to Temporal and the object store as a configuration says, and runs the worker process that
// executes updates.
package worker
