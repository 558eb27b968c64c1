// Package edge is the room of what answers clients. An edge translates between its protocol and package deployments,
// authenticates the caller, and lets the table of rules in grpcapi decide what they may do.
//
// What a call does is in internal/service.
//
//   - auditfile: writes the audit log as CSV and CEF
//   - console: the edge of browsers: pages about what runs and what needs a person, by the rules of grpcapi
//   - grpcapi: the gRPC edge: authentication, the table of rules, audit
//   - grpcapi/memory: a service in memory, for tests of clients
//   - grpcapi/wire: translation between messages and deployments
//   - pulumiapi: the edge of the stock CLI: the Pulumi Service API over HTTP, by the rules of grpcapi
package edge
