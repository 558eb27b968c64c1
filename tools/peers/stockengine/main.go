// Command stockengine plays updates on Pulumi's own engine, in process: package differential compares deployctl with
// it. It reads requests from standard input and writes an answer to each to standard output, a line of JSON each, and
// keeps the states of its stacks in memory. Language hosts and providers are the processes that it finds on PATH.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// request asks for an update of a stack, or for something else with its state.
type request struct {
	ID    int    `json:"id"`    // of the answer, too
	Kind  string `json:"kind"`  // up, refresh, destroy, import; verify, remove
	Stack string `json:"stack"` // its name; a new one has no resources
	Dir   string `json:"dir"`   // the project's

	Config  map[string]string `json:"config"`
	Secrets map[string]string `json:"secrets"` // configuration that is secret

	DryRun            bool     `json:"dryRun"`
	Parallel          int32    `json:"parallel"`
	Refresh           bool     `json:"refresh"`
	RunProgram        bool     `json:"runProgram"`
	Targets           []string `json:"targets"`
	TargetDependents  bool     `json:"targetDependents"`
	Excludes          []string `json:"excludes"`
	ExcludeDependents bool     `json:"excludeDependents"`
	Replace           []string `json:"replace"`
	ContinueOnError   bool     `json:"continueOnError"`
	IgnoreProtect     bool     `json:"ignoreProtect"`

	// Imports are what an import is of.
	Imports []imported `json:"imports"`

	// State is what verify is about.
	State *apitype.DeploymentV3 `json:"state"`
}

// imported is a resource of an import.
type imported struct {
	Type string `json:"type"`
	Name string `json:"name"`
	ID   string `json:"id"`
}

// answer is the result of a request.
type answer struct {
	ID     int      `json:"id"`
	Error  string   `json:"error,omitempty"`
	Errors []string `json:"errors,omitempty"` // what the engine, the plugins and the program reported as errors
	Steps  []string `json:"steps,omitempty"`  // OPERATION URN, in order
	// Messages are those that the plugins and the program reported as information.
	Messages []string `json:"messages,omitempty"`
	// State is the stack's, with its secrets in plaintext.
	State *apitype.DeploymentV3 `json:"state,omitempty"`
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stockengine:", err)
		os.Exit(1)
	}
}

// serve answers requests until there are no more. Requests of one stack follow one another; others may overlap.
func serve(in io.Reader, out io.Writer) error {
	e := &stockEngine{stacks: map[string]*apitype.DeploymentV3{}}
	var (
		writing sync.Mutex
		playing sync.WaitGroup
	)
	defer playing.Wait()
	requests := json.NewDecoder(bufio.NewReader(in))
	for {
		var r request
		if err := requests.Decode(&r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		playing.Go(func() {
			a := e.answer(context.Background(), r)
			a.ID = r.ID
			line, err := json.Marshal(a)
			if err != nil {
				line = fmt.Appendf(nil, `{"id": %d, "error": %q}`, r.ID, err)
			}
			writing.Lock()
			defer writing.Unlock()
			_, _ = out.Write(append(line, '\n')) // a reader that has gone closes standard input, too
		})
	}
}
