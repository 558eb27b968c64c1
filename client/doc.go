// Package client implements deployments.Service over gRPC, for deployctl and for any Go program.
//
// It hides lost connections: calls that may be repeated are repeated, others wait until the service can be reached
// before they are sent, and a Watch continues after the last event that it has received. Options.Unreachable is called
// when that takes long. Errors are *deployments.Error.
package client
