// Package worker connects the parts to the real world: it builds the Temporal client and the state store of a
// configuration, and a worker process that carries updates out.
package worker
