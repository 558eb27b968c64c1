// Package jobs is the room of what the service does besides updates: runs of schedules, deployments from git, webhooks.
// Each job is activities of a workflow of its own, and submits updates as any client does.
//
// What a client asks for is in internal/service; what an update does is in activities.
//
//   - deployment: the activities of deployments, whose programs are in git repositories
//   - gitsource: gets projects from git repositories, in a process of its own
//   - scheduled: the activities of scheduled runs, and the report of a drift check
//   - webhooks: writes events for webhooks, signs and sends them to public servers, and logs what is answered
package jobs
