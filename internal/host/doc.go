// Package host is the room of what a worker has for each update that it hosts: its session, its plans and steps, and
// what its program talks to.
//
// The activities themselves are in activities, plugins in internal/plugin. What activities consist of (engineprovider,
// failure, heartbeat, hosted, plan, session, step) knows the store and how activities of Temporal end. The rest knows
// neither, but that runlink/runclient knows Temporal. A session imports plan and step, which know it as hosted.Host.
//
//   - assets: checks each asset and archive of a program, and hashes what has no hash, by a process in the sandbox
//   - assets/digest: the process that opens what assets name (ADR 0047)
//   - autonaming: proposes physical names by the rules in a stack's configuration
//   - bundlecache: the unpacked bundles of a worker
//   - compare: asks providers how resources differ from what is wanted
//   - engineprovider: the provider of the engine's own package, pulumi: references to other stacks, and stashes
//   - failure: makes what activities answer fit for Temporal: errors that say what has happened, texts without secrets
//   - heartbeat: the heartbeats of activities, and what they tell
//   - hosted: what plans and steps need of the session of their update
//   - lookup: by which rules and marks the resource of a create is found
//   - monitor: the resource monitor that programs talk to; what it needs of its session is monitor.Host
//   - plan: what providers and policy packs say of what a program declares
//   - policies: runs and configures policy packs, and sums up what their policies have found
//   - ratelimit: limits the calls to an account of a cloud, and the concurrent steps of an update
//   - runlink: messages between a program's host and its Run
//   - runlink/runclient: carries those messages over Temporal
//   - runlink/runlinktest: what tests need in the place of a Run
//   - session: what a worker keeps of each update that it hosts, and how its program runs
//   - stackconfig: reads a stack's configuration for programs and providers
//   - step: makes the steps of an update, and settles those whose answers were lost
package host
