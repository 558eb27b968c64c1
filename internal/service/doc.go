// Package service implements deployments.Service with Temporal, which runs updates, and the state store, which keeps
// their results. It has no state of its own: any number of processes may serve it.
//
// Below it:
//
//   - gitpush: reads and checks what git servers send about pushes
//   - identity: verifies identity tokens (OpenID Connect) of issuers that an organization trusts
//   - identity/identitytest: an issuer of identity tokens for tests
//   - metrics: Prometheus metrics; work.go counts what activities do, package app passes functions for the rest
package service
