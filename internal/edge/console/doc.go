// Package console is the edge of browsers: pages about what runs, what it has done, and what needs a person. It changes
// nothing. Each page names the methods of the gRPC API that tell what it shows, and its reader needs what their rules
// demand. docs/console.md describes the pages.
package console
