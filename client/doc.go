// Package client is deployments.Service over gRPC: what deployctl itself uses, and any Go program may.
//
// Connections come and go without its user noticing: calls that may be repeated are repeated, others wait until the
// service can be reached before they are sent, and a Watch goes on behind the last event it has seen.
// Options.Unreachable hears of it when that takes long. Errors are *deployments.Error.
package client
