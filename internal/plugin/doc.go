// Package plugin is the room of Pulumi's plugins: language hosts, providers and policy packs are found, downloaded,
// started and called here.
//
// What an update does with a plugin is in activities and internal/host; how its process is isolated is in
// internal/sandbox.
//
//   - intake: has large messages of programs and plugins take memory before gRPC receives them
//   - languagehost: the language host for Node, Go and Python programs
//   - pluginhost: finds, starts and stops language hosts, provider plugins and policy packs
//   - pluginhost/hosttest: fake plugins for tests
//   - pluginprotocol: the limits of the protocols between engine, plugins and programs
//   - plugins: downloads plugins that are not installed, verifies and unpacks them; the lock file
package plugin
