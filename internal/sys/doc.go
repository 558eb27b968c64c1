// Package sys is the room of what processes of the service need of their machine: memory, slots, ports, disks and
// outgoing connections, each bounded and shared.
//
// Nothing here knows stacks, updates, the store or Temporal.
//
//   - build: says which build of deployctl this is
//   - diskspace: how much room a disk has left
//   - doors: guards the loopback ports of an update; finds out whose the other end of a connection is
//   - flight: has all who ask for the same thing at once wait for one call
//   - heap: keeps the garbage collector from doubling what pools have given out (ADR 0069)
//   - mempool: shares the memory of a process among organizations (ADR 0044)
//   - outbound: guards requests to servers that users name: public addresses and TLS only
//   - panics: turns panics into errors
//   - share: shares slots, such as those of a worker, and room in caches among organizations (ADR 0066)
//   - tracing: makes spans and exports them (ADR 0078)
package sys
