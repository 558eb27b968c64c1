// Package languagehost serves the LanguageRuntime protocol for programs in Node.js and Go.
package languagehost

import (
	"errors"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// Options say how programs are run.
type Options struct {
	Engine         string            // address of the Engine service, given to programs
	Env            []string          // the whole environment of programs and tools
	Stdout, Stderr func(line string) // receive what programs write
}

// New makes the host of a runtime, if there is one.
func New(runtime string, opts Options) (pulumirpc.LanguageRuntimeServer, bool) {
	return nil, false
}

// DynamicProvider ...
func DynamicProvider(dir string, env []string) (node, script string, err error) {
	return "", "", errors.New("not yet")
}
