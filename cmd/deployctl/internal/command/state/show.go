package state

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/stack"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/valuediff"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/urfave/cli/v2"
)

// showCommand returns deployctl show.
func showCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show what the state records about a resource", ArgsUsage: "RESOURCE",
		Description: "RESOURCE is a URN, or a name that only one resource has. Secrets are shown as [secret]; " +
			"--show-secrets needs the role deployer.",
		Flags:  console.OnStack(console.JSONFlag, console.ShowSecretsFlag),
		Action: console.Action(s, runShow),
	}
}

func runShow(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	list, err := s.Resources(ctx, info, s.Flags.Bool("show-secrets"))
	if err != nil {
		return err
	}
	u, err := console.FindURN(list, s.Flags.Args().First())
	if err != nil {
		return err
	}
	var copies []map[string]any
	for _, r := range list {
		if r.URN != u {
			continue
		}
		fields, err := readable(r)
		if err != nil {
			return err
		}
		copies = append(copies, fields)
		if !s.Flags.Bool("json") {
			sayResource(s, r, fields)
		}
	}
	switch {
	case !s.Flags.Bool("json"):
		return nil
	case len(copies) == 1:
		return s.SayJSON(copies[0])
	}
	return s.SayJSON(copies)
}

// readable returns the fields of a resource as the deployment has them, with secrets as people read them.
func readable(r apitype.ResourceV3) (map[string]any, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, deployments.Errorf(deployments.CodeFormat, "the resource %s cannot be read: %w", r.URN, err)
	}
	for _, part := range []string{"inputs", "outputs", "replacementTrigger"} {
		if value, ok := fields[part]; ok {
			fields[part] = stack.Opened(value)
		}
	}
	return fields, nil
}

// sayResource prints a resource: its identity, what it refers to, and its properties.
func sayResource(s *console.Session, r apitype.ResourceV3, fields map[string]any) {
	s.Say("%s", r.URN)
	field := func(name, value string) {
		if value != "" {
			s.Say("  %-13s %s", name, value)
		}
	}
	field("type", string(r.Type))
	field("id", string(r.ID))
	field("notes", strings.Join(stateNotes(r), ", "))
	field("provider", r.Provider)
	field("parent", string(r.Parent))
	for _, u := range r.Dependencies {
		field("depends on", string(u))
	}
	field("deleted with", string(r.DeletedWith))
	field("view of", string(r.ViewOf))
	field("extension", string(r.ExtensionRef))
	field("created", timeText(r.Created))
	field("modified", timeText(r.Modified))
	for _, message := range r.InitErrors {
		field("error", message)
	}
	for _, part := range []string{"inputs", "outputs"} {
		values, _ := fields[part].(map[string]any)
		if len(values) == 0 {
			continue
		}
		s.Say("  %s", part)
		for _, name := range console.Sorted(values) {
			block := valuediff.Block(values[name])
			s.Say("    %s: %s", name, strings.Join(block, "\n      "))
		}
	}
}

// timeText formats a time that may be missing.
func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return console.When(*t)
}
