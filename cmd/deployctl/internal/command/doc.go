// Package command is deployctl's command line. It lists all commands, puts the words of a command line into order, and
// answers what none of them takes; it prints help and completes words.
//
// A command belongs to the package of its group, and each group has a file for each command. Groups know the service as
// a deployments.Service and their environment as a console.Env, so that tests run commands in their own process against
// a service in memory. Commands that need parts of the service itself (dev, serve, worker) come from package app.
//
//   - about: this binary and its settings: about, version, settings
//   - access: who may do what: member, team, token, trust, profile, whoami, audit
//   - configuration: the values in a stack's configuration file: config
//   - console: what the groups share: the session of a command, its flags, its questions, its output
//   - newproject: a project from a template, with its first stack: new
//   - plugin: the plugins of a project or of the user: plugin, install
//   - schedule: what happens to a stack by schedule: schedule
//   - stack: stacks as wholes, and their versions: stack
//   - state: the resources in a stack's state: state, graph, why
//   - status: all stacks, and what runs in them: status, ps
//   - update: what changes a stack and what follows that: up, preview, refresh, destroy, import, watch, drift, attach,
//     logs, cancel, resolve, settle
//   - webhook: who is told what happens: webhook
package command
