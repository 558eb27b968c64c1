package main

import (
	"fmt"
	"os"

	"github.com/deployctl/deployctl/internal/languagehost"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers"
)

// plugins are what this binary is when it is started under another name.
var plugins = map[string]func(args []string) int{
	"pulumi-language-nodejs":    func(args []string) int { return languagehost.Main("nodejs", args) },
	"pulumi-language-go":        func(args []string) int { return languagehost.Main("go", args) },
	"pulumi-resource-deployctl": resourcePlugin,
}

// resourcePlugin serves the first-party package to any engine.
func resourcePlugin(args []string) int {
	if err := provider.Main(providers.Package(providers.Defaults{}), args); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "pulumi-resource-deployctl:", err)
		return 1
	}
	return 0
}
