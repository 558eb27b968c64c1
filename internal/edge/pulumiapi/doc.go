// Package pulumiapi is the edge of the stock Pulumi CLI: it serves the Pulumi Service API over HTTP. It translates
// between that protocol's types, Pulumi's apitype, and the contract of package deployments.
//
// Calls are authenticated by the tokens of the service, or by the token of a lease, and checked against the rules of
// the gRPC API: each route names the method that does the same. docs/stock-cli.md lists what the CLI can do with it.
package pulumiapi
