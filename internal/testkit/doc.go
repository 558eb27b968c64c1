// Package testkit is the room of what tests of several packages need. No product code imports it.
//
// A fake that stands in for one package lies below that package.
//
//   - cloudtest: fakes of the endpoints at which clouds give credentials for tokens
//   - collectortest: a collector of traces
//   - filltest: sets every field of a value, for tests that no field is forgotten
//   - mutanttest: plays a package's tests against versions of it that are wrong in one place
//   - peertest: finds the stock CLI and language hosts for tests
//   - porttest: ports for tests that nobody else gets
//   - postgrestest: a PostgreSQL server for tests
//   - rapidtest: checks properties with the same draws in every run
//   - scenario: a language host whose programs are scripts
//   - scenario/cmd/pulumi-language-scenario: that host as a program
//   - soaktest: leaves tests to make soak
//   - usertest: runs tests again as a user other than root
//   - waittest: waits in tests, which say what they waited for
package testkit
