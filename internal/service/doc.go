// Package service implements deployments.Service with Temporal, which runs updates, and the state store, which keeps
// their results. It has no state of its own: any number of processes may serve it.
package service
