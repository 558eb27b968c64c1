// Package service is deployments.Service over Temporal, which runs updates, and the state store, which keeps what they
// come to. It keeps nothing of its own: any number of processes may serve it.
package service
