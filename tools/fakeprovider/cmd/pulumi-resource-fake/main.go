// Command pulumi-resource-fake is the provider plugin of the fake cloud.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/deployctl/deployctl/tools/fakeprovider"
)

// version is the plugin's; the linker may set another.
var version = "0.1.0"

func main() {
	if err := fakeprovider.Serve(context.Background(), version); err != nil {
		fmt.Fprintln(os.Stderr, "pulumi-resource-fake:", err)
		os.Exit(1)
	}
}
