// Package provider is the SDK for convergent resource providers.
//
// A product author writes, for each type of resource, a Go type with typed inputs and outputs and two methods:
// Reconcile, which brings the world to what is declared from wherever it stands, and Delete, which succeeds when there
// is nothing left. Everything else — the wire protocol, the schema, checking, diffing, names, secrets, unknown values
// of a preview — is derived from the types.
//
// # Convergence
//
// Reconcile observes, ensures, synchronises and returns. It may be called again after an attempt whose outcome was
// lost, so a create must find what an earlier attempt made (its physical name comes from the engine's seed, see Naming)
// and tell it from what belongs to somebody else (see Identity.Owner and Foreign). An engine therefore settles an
// unknown outcome of such a type by asking for it again; a type that cannot converge says so with Settling. Whether it
// converges, package providertest finds out.
//
// # Types
//
// Inputs and outputs are structs. Every exported field that has a `pulumi` tag is a property:
//
//	type BucketIn struct {
//	    Name   string            `pulumi:"name,autoname,replace" doc:"The physical name."`
//	    Tags   map[string]string `pulumi:"tags,optional"         doc:"Tags of the bucket."`
//	    Secret string            `pulumi:"secret,optional,secret" default:"x" doc:"Never shown."`
//	}
//
// Options: optional (may be left out), replace (a change replaces the resource), secret (always secret), inherit (an
// output that is secret when any input is), stable (an output that no update changes), autoname (an input named by
// Naming when left out). A `default` tag makes an input optional. Fields may be strings, booleans, numbers,
// *asset.Asset, slices, string maps, structs of such, and types that implement Value. Embedded structs are flattened.
package provider
