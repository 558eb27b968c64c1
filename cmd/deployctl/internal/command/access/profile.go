package access

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/urfave/cli/v2"
)

// noStacks is the value of --stacks that leaves no stack.
const noStacks = "none"

// ProfileCommand returns deployctl profile.
func ProfileCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "profile", Usage: "manage named sets of environment variables, and which stacks may use them",
		Description: "A stack uses the profile that its configuration names: deployctl config set deployctl:profile NAME. " +
			"Programs, plugins and hooks of its updates then get the variables, and short-lived credentials of the clouds. " +
			"Who may deploy to such a stack can read them.",
		Subcommands: []*cli.Command{
			{
				Name: "ls", Usage: "list the profiles of the organization", Flags: console.Common(console.JSONFlag),
				Description: "Admins of the organization also see the stacks.", Action: console.Action(s, runProfileLs),
			},
			{
				Name: "show", Usage: "show a profile, without the values of its secrets", ArgsUsage: "NAME",
				Flags: console.Common(console.JSONFlag), Action: console.Action(s, runProfileShow),
			},
			{
				Name: "set", Usage: "make a profile, or change variables, clouds, stacks or the description of one",
				ArgsUsage: "NAME [KEY=VALUE]...",
				Description: "What is not named stays. Updates that begin from then on use the new version; those that run keep " +
					"theirs.",
				Flags: console.Common(append(cloudFlags(),
					&cli.StringSliceFlag{Name: "secret", Usage: "set a variable whose value is never shown, `KEY=VALUE`, or KEY " +
						"alone: its value is read from the terminal or the standard input; may be repeated"},
					&cli.StringSliceFlag{Name: "stacks", Usage: "from now on the stacks of this `GLOB` of PROJECT/STACK may use " +
						"it; may be repeated; none: no stack may"},
					&cli.StringFlag{Name: "description", Usage: "`TEXT` that says what it is for"},
					&cli.IntFlag{Name: "if-version", Usage: "change it only if it has version `N`; 0: only if there is none"})...),
				Action: console.Action(s, runProfileSet),
			},
			{
				Name: "unset", Usage: "remove variables or clouds of a profile", ArgsUsage: "NAME [KEY]...",
				Flags: console.Common(append(removedCloudFlags(),
					&cli.IntFlag{Name: "if-version", Usage: "change it only if it has version `N`"})...),
				Action: console.Action(s, runProfileUnset),
			},
			{
				Name: "rm", Usage: "remove a profile", ArgsUsage: "NAME", Flags: console.Common(),
				Description: "Updates of stacks that name it fail from then on, before they do anything.",
				Action:      console.Action(s, runProfileRm),
			},
		},
	}
}

func runProfileLs(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	list, err := s.Service.Profiles(ctx, s.Settings.Get(settings.Organization))
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"NAME", "VERSION", "CHANGED", "STACKS", "DESCRIPTION"}}
	for _, p := range list {
		if p.Damaged != "" {
			s.Note("error: the profile " + p.Name + " cannot be read: " + p.Damaged)
			continue
		}
		rows = append(rows, []string{p.Name, strconv.Itoa(p.Version), console.When(p.Changed), strings.Join(p.Stacks, " "),
			p.Description})
	}
	return s.SayTable(rows)
}

func runProfileShow(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	p, err := s.Service.Profile(ctx, s.Settings.Get(settings.Organization), s.Flags.Args().First())
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(p)
	}
	if p.Damaged != "" {
		return deployments.Errorf(deployments.CodeFormat, "the profile %s cannot be read: %s", p.Name, p.Damaged)
	}
	s.Say("Profile %s of %s, version %d, changed by %s at %s", p.Name, p.Organization, p.Version, p.By,
		console.When(p.Changed))
	if p.Description != "" {
		s.Say("  %s", p.Description)
	}
	stacks := strings.Join(p.Stacks, " ")
	if stacks == "" {
		stacks = "none (deployctl profile set " + p.Name + " --stacks PROJECT/STACK)"
	}
	s.Say("  stacks: %s", stacks)
	sayClouds(s, p.Clouds)
	if len(p.Variables) == 0 && !p.Clouds.Empty() {
		return nil
	}
	rows := [][]string{{"VARIABLE", "VALUE"}}
	for _, v := range p.Variables {
		if v.Secret {
			v.Value = redaction.Placeholder
		}
		rows = append(rows, []string{v.Name, v.Value})
	}
	return s.SayTable(rows)
}

func runProfileSet(ctx context.Context, s *console.Session) error {
	c := deployments.ProfileChange{Organization: s.Settings.Get(settings.Organization), Name: s.Flags.Args().First()}
	for _, text := range s.Flags.Args().Tail() {
		name, value, found := strings.Cut(text, "=")
		if !found {
			return deployments.Errorf(deployments.CodeInvalid, "a variable is set by KEY=VALUE, not %q", name)
		}
		c.Set = append(c.Set, deployments.ProfileVariable{Name: name, Value: value})
	}
	if s.Flags.IsSet("stacks") {
		stacks := s.Flags.StringSlice("stacks")
		if len(stacks) == 1 && stacks[0] == noStacks {
			stacks = nil
		}
		c.Stacks = &stacks
	}
	if s.Flags.IsSet("description") {
		about := s.Flags.String("description")
		c.Description = &about
	}
	var err error
	if c.Clouds, err = cloudsOf(s); err != nil {
		return err
	}
	if err := addSecrets(s, &c); err != nil {
		return err
	}
	return changeProfile(ctx, s, c)
}

// addSecrets adds the variables of --secret. One may be without a value, which is read then.
func addSecrets(s *console.Session, c *deployments.ProfileChange) error {
	asked := -1 // which of c.Set
	for _, text := range s.Flags.StringSlice("secret") {
		name, value, found := strings.Cut(text, "=")
		if !found && asked >= 0 {
			return deployments.Errorf(deployments.CodeInvalid, "only one --secret can be without a value, and %s is another "+
				"one: set it by a command of its own", name)
		}
		if !found {
			asked = len(c.Set)
		}
		c.Set = append(c.Set, deployments.ProfileVariable{Name: name, Value: value, Secret: true})
	}
	if asked < 0 {
		return nil
	}
	if err := c.Validate(); err != nil {
		return err // before a person is asked
	}
	var err error
	c.Set[asked].Value, err = secretValue(s, c.Set[asked].Name)
	return err
}

// secretValue reads the value of a variable from the terminal or the standard input.
func secretValue(s *console.Session, name string) (string, error) {
	if s.Hidden != nil && !s.Flags.Bool("non-interactive") {
		return s.AskHidden(fmt.Sprintf("Value of %s: ", name))
	}
	text, err := io.ReadAll(io.LimitReader(s.In, deployments.MaxProfileBytes+3)) // a longer one is refused
	if err != nil {
		return "", deployments.Errorf(deployments.CodeInvalid, "the standard input cannot be read: %w", err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		return "", deployments.Errorf(deployments.CodeInvalid, "no value was given for %s: pass --secret %s=VALUE, or send "+
			"the value to the standard input", name, name)
	}
	return value, nil
}

func runProfileUnset(ctx context.Context, s *console.Session) error {
	return changeProfile(ctx, s, deployments.ProfileChange{Organization: s.Settings.Get(settings.Organization),
		Name: s.Flags.Args().First(), Removed: s.Flags.Args().Tail(), RemovedClouds: removedClouds(s)})
}

// changeProfile makes a change, of the version that the flags name.
func changeProfile(ctx context.Context, s *console.Session, c deployments.ProfileChange) error {
	if s.Flags.IsSet("if-version") {
		base := s.Flags.Int("if-version")
		c.Base = &base
	}
	if err := c.Validate(); err != nil {
		return err
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	p, err := s.Service.ChangeProfile(ctx, c)
	if err != nil {
		return err
	}
	s.Say("The profile %s has version %d now.", p.Name, p.Version)
	if len(p.Stacks) == 0 {
		s.Say("  No stack may use it yet: deployctl profile set %s --stacks PROJECT/STACK", p.Name)
	}
	return nil
}

func runProfileRm(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	return s.Service.RemoveProfile(ctx, s.Settings.Get(settings.Organization), s.Flags.Args().First())
}
