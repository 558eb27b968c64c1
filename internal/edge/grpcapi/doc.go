// Package grpcapi is the gRPC edge of deployments.Service: it finds out who calls and checks by one table of rules what
// they may do, keeps what a call costs bounded, has calls recorded, and translates messages and codes (see package
// wire). Off loopback it serves TLS only.
package grpcapi
