package app

import (
	"fmt"
	"io"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/worker"
	"github.com/urfave/cli/v2"
)

// checkFlag lets serve and worker check everything that they need, and exit.
var checkFlag = &cli.BoolFlag{Name: "check", Usage: "check everything that the process needs, print a line for each " +
	"check, and exit with 0 if it could start, else 1"}

// checkPatience is how long a check waits for an answer of Temporal or S3.
const checkPatience = 5 * time.Second

// patience returns how long to wait for answers of Temporal and S3; 0 is the default of the worker package.
func patience(check bool) time.Duration {
	if check {
		return checkPatience
	}
	return 0
}

// check prints the findings of a start, and returns an error if one of them prevents it.
func (o *start) check() error {
	for _, f := range o.found {
		printFinding(o.Out, f)
	}
	if n := len(o.failed()); n > 0 {
		return deployments.Errorf(deployments.CodeInternal, "the process could not start; failed checks: %d", n)
	}
	return nil
}

func printFinding(out io.Writer, f worker.Finding) {
	result, said := "ok", f.Detail
	switch {
	case f.Skipped:
		result = "skipped"
	case f.Err != nil && f.Tolerable:
		result, said = "warning", f.Err.Error()
	case f.Err != nil:
		result, said = "failed", f.Err.Error()
	}
	_, _ = fmt.Fprintf(out, "%-8s %-18s %s\n", result, f.What, said)
}
