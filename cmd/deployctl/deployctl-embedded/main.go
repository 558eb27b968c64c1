// Command deployctl-embedded is deployctl with the servers of the embedded service: Temporal, its Web UI and an S3
// server. They are two thirds of it, so it is a program of its own, and the commands that need no server start in half
// the time. deployctl looks for it in its own directory.
package main

import (
	"os"

	"github.com/deployctl/deployctl/cmd/deployctl/deployctl-embedded/servers"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/app"
)

func main() { os.Exit(app.Main(servers.All{})) }
