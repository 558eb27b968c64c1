package command

import (
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"
)

func versionCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version",
		Action: func(*cli.Context) error {
			_, err := fmt.Fprintf(s.Out, "deployctl %s (%s, %s/%s)\n", s.Version, runtime.Version(), runtime.GOOS,
				runtime.GOARCH)
			return err
		},
	}
}
