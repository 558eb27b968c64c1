package state

import (
	"context"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/urfave/cli/v2"
)

// Command returns deployctl state.
func Command(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "state", Usage: "show the stack's state, or change single resources of it",
		Description: "A change is a new version of the stack: deployctl stack restore brings the version before it " +
			"back. No real resource is changed.",
		Subcommands: []*cli.Command{
			lsCommand(s), showCommand(s), deleteCommand(s), protectCommand(s),
			unprotectCommand(s), taintCommand(s), untaintCommand(s), renameCommand(s),
			moveCommand(s), repairCommand(s), editCommand(s),
		},
	}
}

// lsCommand returns deployctl ls.
func lsCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "ls", Aliases: []string{"list"}, Usage: "list the resources of the state",
		Description: "NOTES are: protected, tainted (the next up replaces it), external (read, not owned), deleting " +
			"(a copy that waits for its deletion), replacing (deleted, not created again yet), and failed (it did not " +
			"initialise).",
		Flags:  console.OnStack(console.JSONFlag, &cli.BoolFlag{Name: "urns", Usage: "print only URNs, one a line"}),
		Action: console.Action(s, runLs),
	}
}

// listedResource is one item of `state ls --json`.
type listedResource struct {
	URN      string   `json:"urn"`
	Type     string   `json:"type"`
	Name     string   `json:"name"`
	ID       string   `json:"id,omitempty"`
	Parent   string   `json:"parent,omitempty"`
	Provider string   `json:"provider,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

func listed(r apitype.ResourceV3) listedResource {
	return listedResource{
		URN: string(r.URN), Type: string(r.Type), Name: r.URN.Name(), ID: string(r.ID), Parent: string(r.Parent),
		Provider: r.Provider, Notes: stateNotes(r),
	}
}

func runLs(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	list, err := s.Resources(ctx, info, false)
	if err != nil {
		return err
	}
	items, rows := []listedResource{}, [][]string{{"NAME", "TYPE", "ID", "NOTES"}}
	for _, r := range list {
		item := listed(r)
		items = append(items, item)
		rows = append(rows, []string{item.Name, item.Type, item.ID, strings.Join(item.Notes, ", ")})
	}
	switch {
	case s.Flags.Bool("json"):
		return s.SayJSON(items)
	case s.Flags.Bool("urns"):
		for _, item := range items {
			s.Say("%s", item.URN)
		}
		return nil
	}
	return s.SayTable(rows)
}

// stateNotes lists what is special about a resource.
func stateNotes(r apitype.ResourceV3) []string {
	var notes []string
	for _, note := range []struct {
		text  string
		holds bool
	}{
		{"protected", r.Protect}, {"tainted", r.Taint}, {"external", r.External}, {"deleting", r.Delete},
		{"replacing", r.PendingReplacement}, {"failed", len(r.InitErrors) > 0},
	} {
		if note.holds {
			notes = append(notes, note.text)
		}
	}
	return notes
}

// editState makes an edit of the state. If the edit needs a confirmation, it shows first what would change, and then
// changes only the version that it has shown.
func editState(ctx context.Context, s *console.Session, r deployments.EditRequest, question string) error {
	if question != "" && !s.Flags.Bool("yes") {
		r.DryRun = true
		edited, err := s.Service.EditState(ctx, r)
		if err != nil {
			return err
		}
		if len(edited.Changes) > 0 {
			if err := s.MustAsk(); err != nil {
				return err
			}
			sayChanges(s, edited.Changes)
			if err := s.Confirm(ctx, question, nil); err != nil {
				return err
			}
		}
		r.DryRun, r.BaseVersion = false, &edited.Version
	}
	edited, err := s.Service.EditState(ctx, r)
	if deployments.CodeOf(err) == deployments.CodeUnconfirmed {
		if !r.Force {
			if err := s.ConfirmForgetting(ctx, err, true); err != nil {
				return err
			}
		}
		r.Forget = true
		edited, err = s.Service.EditState(ctx, r)
	}
	switch {
	case err != nil:
		return err
	case s.Flags.Bool("json"):
		return s.SayJSON(edited)
	case len(edited.Changes) == 0:
		s.Say("There is nothing to change.")
		return nil
	case question == "" || s.Flags.Bool("yes"):
		sayChanges(s, edited.Changes)
	}
	s.Say("Version %d of %s has the change.", edited.Version, r.Stack)
	return nil
}

// sayChanges prints a line for each change.
func sayChanges(s *console.Session, changes []string) {
	for _, change := range changes {
		s.Say("  %s", change)
	}
}
