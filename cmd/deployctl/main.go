// Command deployctl deploys infrastructure with updates that survive crashes. The same binary is the client, the
// service, the worker and, depending on the name that it is started with, plugins for other engines. The service of one
// machine is deployctl-embedded, which it starts when it is needed.
package main

import (
	"os"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/app"
)

func main() { os.Exit(app.Main(nil)) }
