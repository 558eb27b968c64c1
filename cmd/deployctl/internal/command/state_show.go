package command

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/valuediff"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/urfave/cli/v2"
)

func stateShowCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show what the state records about a resource", ArgsUsage: "RESOURCE",
		Description: "RESOURCE is a URN, or a name that only one resource has. Secrets are shown as [secret]; " +
			"--show-secrets needs the role deployer.",
		Flags:  onStack(jsonFlag, showSecretsFlag),
		Action: action(s, runStateShow),
	}
}

func runStateShow(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	list, err := s.resources(ctx, info, s.flags.Bool("show-secrets"))
	if err != nil {
		return err
	}
	u, err := findURN(list, s.flags.Args().First())
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
		if !s.flags.Bool("json") {
			s.sayResource(r, fields)
		}
	}
	switch {
	case !s.flags.Bool("json"):
		return nil
	case len(copies) == 1:
		return s.sayJSON(copies[0])
	}
	return s.sayJSON(copies)
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
			fields[part] = open(value)
		}
	}
	return fields, nil
}

// sayResource prints a resource: its identity, what it refers to, and its properties.
func (s *session) sayResource(r apitype.ResourceV3, fields map[string]any) {
	s.say("%s", r.URN)
	field := func(name, value string) {
		if value != "" {
			s.say("  %-13s %s", name, value)
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
		s.say("  %s", part)
		for _, name := range sorted(values) {
			block := valuediff.Block(values[name])
			s.say("    %s: %s", name, strings.Join(block, "\n      "))
		}
	}
}

// timeText formats a time that may be missing.
func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return when(*t)
}
