// Package terminal is the room of what the commands of the client need: drawing, settings, templates, import files.
//
// The commands are in cmd/deployctl/internal/command. Nothing but commands imports this room.
//
//   - display: draws updates on terminals, as lines and as JSON
//   - importfile: reads and writes files that list resources to import
//   - settings: settings from flags, environment and file
//   - templates: makes projects from templates: of the binary, a directory or a git repository
package terminal
