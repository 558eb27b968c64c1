package about

import (
	"context"
	"runtime/debug"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/sys/build"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// Command returns deployctl about.
func Command(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "about", Usage: "print what a report of a problem should contain: versions, the service, the project",
		Description: "It has no secrets, starts nothing and sends nothing.",
		Flags:       console.Common(console.JSONFlag),
		Action:      console.Action(s, runAbout),
	}
}

// about is what the command prints, as --json has it. What is not there is left out.
type about struct {
	build.Info
	PulumiSDK string `json:"pulumiSDK,omitempty"`
	Service   string `json:"service"` // its address, or "embedded"
	Project   string `json:"project,omitempty"`
	Runtime   string `json:"runtime,omitempty"`
	Directory string `json:"directory,omitempty"`
	Stack     string `json:"stack,omitempty"`
}

func runAbout(_ context.Context, s *console.Session) error {
	a := about{Info: s.Build,
		PulumiSDK: moduleVersion("github.com/pulumi/pulumi/sdk/v3"), Service: s.Settings.Get(settings.Server)}
	if a.Service == "" {
		a.Service = "embedded"
	}
	if found, err := project.Find(s.WorkDir); err == nil { // else there is none
		a.Project, a.Runtime, a.Directory = found.Name(), found.Definition.Runtime.Name(), found.Dir
		if a.Stack, err = s.Selections().Selected(found); err != nil {
			return err
		}
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(a)
	}
	var rows [][]string
	for _, row := range [][]string{{"deployctl", a.Version}, {"commit", a.Commit}, {"date", a.Date},
		{"workflow revision", a.Revision}, {"Go", a.Go}, {"platform", a.Platform},
		{"Pulumi SDK", a.PulumiSDK}, {"service", a.Service}, {"project", a.Project}, {"runtime", a.Runtime},
		{"directory", a.Directory}, {"selected stack", a.Stack}} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	return s.SayTable(rows)
}

// moduleVersion returns the version of a module that this binary was built with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return ""
}
