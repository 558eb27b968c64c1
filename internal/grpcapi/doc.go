// Package grpcapi is the gRPC edge of deployments.Service: it authenticates callers, translates messages and codes (see
// package wire), and decides nothing. Off loopback it serves TLS only.
package grpcapi
