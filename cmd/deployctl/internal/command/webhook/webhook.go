package webhook

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// Command returns deployctl webhook.
func Command(s *console.Env) *cli.Command {
	everywhere := &cli.BoolFlag{Name: "all-stacks", Usage: "the webhooks of all stacks of the organization"}
	command := func(name, args, usage string, run func(context.Context, *console.Session) error,
		more ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, ArgsUsage: args, Flags: console.OnStack(append(more, everywhere)...),
			Action: console.Action(s, run)}
	}
	return &cli.Command{
		Name: "webhook", Usage: "send what happens to a stack to a server, to Slack or to Microsoft Teams",
		Subcommands: []*cli.Command{
			command("new", "URL", "create a webhook", runWebhookNew,
				&cli.StringFlag{Name: "name", Usage: "`NAME` for people; not set: the server's"},
				&cli.StringFlag{Name: "format", Usage: "`FORMAT` of the events: raw, slack or ms_teams", Value: "raw"},
				&cli.StringSliceFlag{Name: "event", Usage: "send only this `EVENT`, such as update_failed (may be repeated)"},
				&cli.StringSliceFlag{Name: "group", Usage: "send this `GROUP` of events: stacks or deployments (may be repeated)"},
				&cli.StringFlag{Name: "secret-file", Usage: "`FILE` with the key that signs the events; - is the standard input"}),
			command("ls", "", "list the webhooks", runWebhookLs, console.JSONFlag),
			command("rm", "ID", "remove a webhook and its log", runWebhookRm),
			command("ping", "ID", "send a ping, and show what the server answers", runWebhookPing, console.JSONFlag),
			command("deliveries", "ID", "list what a webhook was sent, and what was answered", runWebhookDeliveries,
				console.JSONFlag),
			command("redeliver", "ID EVENT", "send an event of the log once more", runWebhookRedeliver, console.JSONFlag),
		},
	}
}

// webhookScope connects, and returns whose webhooks a command is about.
func webhookScope(ctx context.Context, s *console.Session) (deployments.WebhookScope, error) {
	if s.Flags.Bool("all-stacks") {
		return deployments.WebhookScope{Organization: s.Settings.Get(settings.Organization)}, s.Dial(ctx)
	}
	info, err := s.KnownStack(ctx)
	return deployments.ScopeOf(info.Stack), err
}

// webhook returns the name of the command's webhook.
func webhook(ctx context.Context, s *console.Session) (deployments.WebhookName, error) {
	scope, err := webhookScope(ctx, s)
	return deployments.WebhookName{Scope: scope, Name: s.Flags.Args().First()}, err
}

func runWebhookNew(ctx context.Context, s *console.Session) error {
	scope, err := webhookScope(ctx, s)
	if err != nil {
		return err
	}
	w := deployments.Webhook{Name: deployments.WebhookName{Scope: scope}, Title: s.Flags.String("name"),
		URL: s.Flags.Args().First(), Format: deployments.WebhookFormat(s.Flags.String("format")),
		Events: s.Flags.StringSlice("event"), Groups: s.Flags.StringSlice("group")}
	if w.Title == "" {
		_, rest, _ := strings.Cut(w.URL, "://")
		w.Title, _, _ = strings.Cut(rest, "/")
	}
	if file := s.Flags.String("secret-file"); file != "" {
		if w.Secret, err = secretOf(file); err != nil {
			return err
		}
	}
	if w, err = s.Service.PutWebhook(ctx, w); err != nil {
		return err
	}
	s.Say("Created webhook %s of %s.\n  deployctl webhook ping %s   tries it", w.Name.Name, scope, w.Name.Name)
	return nil
}

// secretOf reads the key of signatures from a file, or from the standard input.
func secretOf(file string) (string, error) {
	read := func() ([]byte, error) { return os.ReadFile(file) }
	if file == "-" {
		read = func() ([]byte, error) { return io.ReadAll(io.LimitReader(os.Stdin, deployments.MaxWebhookSecret+2)) }
	}
	text, err := read()
	secret := strings.TrimRight(string(text), "\r\n")
	if err == nil && secret == "" {
		return "", deployments.Errorf(deployments.CodeInvalid, "%s is empty: write the key of the signatures into it", file)
	}
	if err != nil {
		return "", deployments.Errorf(deployments.CodeInvalid, "the key of the signatures cannot be read: %w", err)
	}
	return secret, nil
}

func runWebhookLs(ctx context.Context, s *console.Session) error {
	scope, err := webhookScope(ctx, s)
	if err != nil {
		return err
	}
	list, err := s.Service.Webhooks(ctx, scope)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"ID", "NAME", "FORMAT", "EVENTS", "SIGNED", "URL"}}
	for _, w := range list {
		events := strings.Join(append(w.Groups, w.Events...), ", ")
		switch {
		case w.Paused:
			events = "paused"
		case events == "":
			events = "all"
		}
		rows = append(rows, []string{w.Name.Name, w.Title, string(w.Format), events, strconv.FormatBool(w.HasSecret), w.URL})
	}
	return s.SayTable(rows)
}

func runWebhookRm(ctx context.Context, s *console.Session) error {
	n, err := webhook(ctx, s)
	if err != nil {
		return err
	}
	if err := s.Service.RemoveWebhook(ctx, n); err != nil {
		return err
	}
	s.Say("Removed webhook %s of %s.", n.Name, n.Scope)
	return nil
}

func runWebhookPing(ctx context.Context, s *console.Session) error { return sendWebhook(ctx, s, "") }

func runWebhookRedeliver(ctx context.Context, s *console.Session) error {
	return sendWebhook(ctx, s, s.Flags.Args().Get(1))
}

func sendWebhook(ctx context.Context, s *console.Session, event string) error {
	n, err := webhook(ctx, s)
	if err != nil {
		return err
	}
	d, err := s.Service.SendWebhook(ctx, n, event)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(d)
	}
	if d.Error != "" {
		return deployments.Errorf(deployments.CodeUnavailable, "the webhook did not accept the event %s: %s", d.ID, d.Error)
	}
	s.Say("The webhook accepted the event %s: it answered %d.", d.ID, d.Status)
	return nil
}

func runWebhookDeliveries(ctx context.Context, s *console.Session) error {
	n, err := webhook(ctx, s)
	if err != nil {
		return err
	}
	list, err := s.Service.WebhookDeliveries(ctx, n)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"EVENT", "KIND", "SENT", "ATTEMPT", "RESULT"}}
	for _, d := range list {
		result := "accepted"
		if d.Error != "" {
			result = d.Error
		}
		rows = append(rows, []string{d.ID, d.Event, console.When(d.Sent), strconv.Itoa(d.Attempt), result})
	}
	return s.SayTable(rows)
}
