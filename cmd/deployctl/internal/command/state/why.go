package state

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

// WhyCommand returns deployctl why.
func WhyCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "why", Usage: "show which update last changed a resource, which one made it, and what led to the change",
		ArgsUsage: "RESOURCE",
		Description: "RESOURCE is a URN, or a name that only one resource has; the URN may be that of a deleted " +
			"resource. The answer comes from the event logs of the updates in the history, as far as these are kept.",
		Flags: console.OnStack(console.JSONFlag, &cli.IntFlag{Name: "limit", Usage: "search the latest `N` updates; 0 searches all",
			Value: 0}),
		Action: console.Action(s, runWhy),
	}
}

// whyAnswer is the output of `why --json`.
type whyAnswer struct {
	URN string `json:"urn"`
	// Changed is the update that changed the resource last; Made is the one that made it. Either is nil if no log has
	// it.
	Changed *deployments.UpdateInfo `json:"changed,omitempty"`
	Made    *deployments.UpdateInfo `json:"made,omitempty"`
	// Cause says what changed, and why.
	Cause *cause `json:"cause,omitempty"`
	// Since are later versions that no update made, for example an import of a state.
	Since []deployments.UpdateInfo `json:"since,omitempty"`
	// Unread are updates without a log.
	Unread []string `json:"unread,omitempty"`
}

func runWhy(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	word := s.Flags.Args().First()
	list, err := s.Resources(ctx, info, false)
	if err != nil {
		return err
	}
	u, err := console.FindURN(list, word)
	if err != nil && !urn.URN(word).IsValid() {
		return err
	}
	gone := err
	if gone != nil {
		u = urn.URN(word)
	}
	history, err := s.Service.History(ctx, info.Stack, s.Flags.Int("limit"))
	if err != nil {
		return err
	}
	answer, err := why(ctx, s, string(u), history)
	switch {
	case err != nil:
		return err
	case answer.Changed == nil && gone != nil:
		return gone
	case s.Flags.Bool("json"):
		return s.SayJSON(answer)
	}
	sayWhy(s, answer)
	return nil
}

// why searches a history, the latest update first, for the last change of a resource and for its creation.
func why(ctx context.Context, s *console.Session, id string, history []deployments.UpdateInfo) (whyAnswer, error) {
	answer := whyAnswer{URN: id}
	for _, u := range history {
		if u.Kind == deployments.KindEdit || u.Kind == deployments.KindRestore || u.Kind == deployments.KindRename {
			if answer.Changed == nil {
				answer.Since = append(answer.Since, u)
			}
			continue
		}
		state, err := logged(ctx, s, u.Update)
		if u.Kind == engine.KindImport && deployments.CodeOf(err) == deployments.CodeNotFound {
			if answer.Changed == nil { // the import of a state, which has no events
				answer.Since = append(answer.Since, u)
			}
			continue
		}
		if deployments.CodeOf(err) == deployments.CodeNotFound || deployments.CodeOf(err) == deployments.CodeFormat {
			answer.Unread = append(answer.Unread, u.Update.Version)
			continue
		}
		if err != nil {
			return answer, err
		}
		row := state.ByURN[id]
		if row == nil || !row.IsChange() {
			continue
		}
		if answer.Changed == nil {
			answer.Changed = &u
			why := findCauses(ctx, s, u.Update, state).of(row)
			answer.Cause = &why
		}
		if makes[row.Op] && row.Phase != projection.PhaseFailed {
			answer.Made = &u
			return answer, nil
		}
	}
	return answer, nil
}

// makes are the operations after which there is a resource that was not there before.
var makes = map[apitype.OpType]bool{
	apitype.OpCreate: true, apitype.OpCreateReplacement: true, apitype.OpReplace: true, apitype.OpImport: true,
	apitype.OpImportReplacement: true, apitype.OpRead: true, apitype.OpReadReplacement: true,
}

// logged reads the event log of an update that has ended.
func logged(ctx context.Context, s *console.Session, u deployments.UpdateName) (*projection.State, error) {
	state := projection.NewState()
	err := s.Service.Watch(ctx, u, func(e deployments.WatchEvent) error {
		state.Apply(e)
		return nil
	})
	return state, err
}

// findCauses returns what is needed to explain the changes of an update. If the state that the update left is not kept,
// the dependencies of the newest one are used.
func findCauses(ctx context.Context, s *console.Session, u deployments.UpdateName, state *projection.State) causes {
	c := causes{update: state, dependencies: map[string]apitype.ResourceV3{}}
	for _, version := range []int{u.Number(), 0} {
		untyped, err := s.Service.Export(ctx, u.StackName, version, deployments.SecretsProvider{}, false)
		if err != nil {
			continue
		}
		list, err := console.ParseResources(untyped)
		if err != nil {
			continue
		}
		for _, r := range list {
			if _, ok := c.dependencies[string(r.URN)]; !ok && !r.Delete {
				c.dependencies[string(r.URN)] = r
			}
		}
	}
	return c
}

// sayWhy prints an answer.
func sayWhy(s *console.Session, a whyAnswer) {
	s.Say("%s", a.URN)
	for _, u := range slices.Backward(a.Since) {
		s.Say("  version %s (%s%s) was made after its last update, and may have changed its state", u.Update.Version,
			u.Kind,
			messageText(u))
	}
	if a.Changed == nil {
		s.Say("  no update whose log is kept has changed it")
	} else {
		s.Say("  last changed by %s", updateText(*a.Changed))
		sayCause(s, *a.Cause, "    ")
	}
	switch {
	case a.Made == nil && a.Changed != nil:
		s.Say("  made by an update whose log is not kept, or by an import of its state")
	case a.Made != nil && a.Made.Update != a.Changed.Update:
		s.Say("  made by %s", updateText(*a.Made))
	}
	if len(a.Unread) > 0 {
		s.Say("  the logs of these updates are not kept: %s", strings.Join(a.Unread, ", "))
	}
}

// sayCause prints what happened to a resource and, indented, to those that led to it.
func sayCause(s *console.Session, c cause, indent string) {
	s.Say("%s%s", indent, c.text())
	for _, change := range c.Changes {
		s.Say("%s  %s", indent, change.text())
		for _, from := range change.From {
			s.Say("%s    because of %s", indent, from.URN)
			sayCause(s, from, indent+"      ")
		}
	}
	for _, from := range c.From {
		s.Say("%s  because of %s", indent, from.URN)
		sayCause(s, from, indent+"    ")
	}
}

func updateText(u deployments.UpdateInfo) string {
	text := fmt.Sprintf("version %s: %s of %s", u.Update.Version, u.Kind, console.When(u.Started))
	if u.Initiator != "" {
		text += " by " + u.Initiator
	}
	if u.Status != deployments.StatusSucceeded {
		text += ", which " + u.Status
	}
	return text + messageText(u)
}

// messageText returns the message of an update to be added to a sentence; empty if there is none.
func messageText(u deployments.UpdateInfo) string {
	if u.Message == "" {
		return ""
	}
	first, _, _ := strings.Cut(u.Message, "\n")
	return ": " + first
}
