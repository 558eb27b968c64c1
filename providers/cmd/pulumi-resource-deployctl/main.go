// Command pulumi-resource-deployctl serves the package deployctl as a plugin process, for any engine that speaks Pulumi's provider protocol.
package main

import (
	"fmt"
	"os"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers"
)

func main() {
	if err := provider.Main(providers.Package(providers.Defaults{}), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
