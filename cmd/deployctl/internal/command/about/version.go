package about

import (
	"encoding/json"
	"fmt"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/urfave/cli/v2"
)

// VersionCommand returns deployctl version.
func VersionCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version, the commit that it was built from, and the revision of its workflows",
		Flags: []cli.Flag{console.JSONFlag},
		Action: func(c *cli.Context) error {
			b := s.Build
			if c.Bool(console.JSONFlag.Name) {
				text, err := json.MarshalIndent(b, "", "  ")
				if err == nil {
					_, err = fmt.Fprintf(s.Out, "%s\n", text)
				}
				return err
			}
			text := "deployctl " + b.Version
			for _, part := range []struct{ what, value string }{{"commit", b.Commit}, {"of", b.Date},
				{"workflow revision", b.Revision}} {
				if part.value != "" {
					text += ", " + part.what + " " + part.value
				}
			}
			_, err := fmt.Fprintf(s.Out, "%s (%s, %s)\n", text, b.Go, b.Platform)
			return err
		},
	}
}
