package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/settings"
	"github.com/deployctl/deployctl/worker"
	"github.com/urfave/cli/v2"
)

// checkFlag has serve and worker look at what they stand on, and end.
var checkFlag = &cli.BoolFlag{Name: "check", Usage: "look at everything that it stands on, print a line for each, and end with 0 if it could start, else 1"}

// checkPatience is how long a check waits for a part that does not answer.
const checkPatience = 5 * time.Second

// check prints what serve or worker would find at its start. What is missing and may be made is made.
func check(ctx context.Context, s *command.Surroundings, loaded settings.Settings) error {
	in, err := infrastructureOf(loaded, nil)
	if err != nil {
		printFinding(s.Out, worker.Finding{What: "settings", Err: err})
		return checkFailed(1)
	}
	defer in.metrics.close()
	config := in.config()
	config.Patience = checkPatience
	connection, found := worker.Examine(ctx, config)
	if connection != nil {
		connection.Close()
	}
	failed := 0
	printFinding(s.Out, worker.Finding{What: "settings", Said: loaded.File()})
	for _, f := range found {
		printFinding(s.Out, f)
		if f.Err != nil && !f.Tolerable {
			failed++
		}
	}
	if failed > 0 {
		return checkFailed(failed)
	}
	return nil
}

func checkFailed(n int) error {
	return deployments.Errorf(deployments.CodeInternal, "it could not start: %d of the checks failed", n)
}

func printFinding(out io.Writer, f worker.Finding) {
	result, said := "ok", f.Said
	switch {
	case f.Err != nil && f.Tolerable:
		result, said = "warning", f.Err.Error()
	case f.Err != nil:
		result, said = "failed", f.Err.Error()
	}
	_, _ = fmt.Fprintf(out, "%-8s %-18s %s\n", result, f.What, said)
}
