package app

import (
	"fmt"
	"os"
	"syscall"

	"github.com/deployctl/deployctl/internal/jobs/gitsource"
	"github.com/deployctl/deployctl/internal/plugin/languagehost"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers"
)

// pluginMains are the plugins that this binary is when it is started under another name.
var pluginMains = map[string]func(args []string) int{
	"pulumi-language-nodejs":        func(args []string) int { return languagehost.Main("nodejs", args) },
	"pulumi-language-go":            func(args []string) int { return languagehost.Main("go", args) },
	"pulumi-language-python":        func(args []string) int { return languagehost.Main("python", args) },
	"pulumi-resource-deployctl":     resourcePlugin,
	"pulumi-resource-pulumi-nodejs": dynamicProvider,
	gitsource.Name:                  func([]string) int { return gitsource.Main() },
}

// resourcePlugin serves the first-party package to any engine.
func resourcePlugin(args []string) int {
	defaults, err := providers.TakeDefaults()
	if err == nil {
		err = provider.Main(providers.Package(defaults), args)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "pulumi-resource-deployctl:", err)
		return 1
	}
	return 0
}

// dynamicProvider runs the provider of dynamic resources of the Node program in the working directory. Only other
// engines use it; deployctl starts the provider directly.
func dynamicProvider(args []string) int {
	dir, err := os.Getwd()
	var node, script string
	if err == nil {
		node, script, err = languagehost.DynamicProvider(dir, process.Environment{Env: os.Environ()})
	}
	if err == nil {
		err = syscall.Exec(node, append([]string{"node", script}, args...), os.Environ())
	}
	_, _ = fmt.Fprintln(os.Stderr, "pulumi-resource-pulumi-nodejs:", err)
	return 1
}
