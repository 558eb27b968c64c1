// Package access keeps who may do what, and what they did: access tokens, members, teams, trusts in issuers of identity
// tokens, profiles of environment variables, the service's own keys as an issuer, what all these allow at a time, and
// the audit log.
//
// The layout, under the bucket's prefix:
//
//	tokens/NAME                 access tokens, hashed
//	members/ORG/NAME            owners of tokens, and their grants; ORG is _ for all of them
//	teams/ORG/NAME              grants of teams; who is in one is in the members
//	trusts/ORG/NAME             which identities get tokens
//	profiles/ORG/NAME           environment variables for programs, and which stacks may use them
//	service/issuer-keys         the keys that sign workload tokens for clouds
//	exchanged/DAY/HASH          identity tokens that were exchanged, by the day on which they expire
//	audit/ORG/DAY/TIME-ID       the audit log
//
// Everything but the marks of exchanges is sealed. The package knows no stack but by its name.
//
// All methods may be called concurrently, by any number of processes. Errors are *deployments.Error or end with the
// context.
package access
