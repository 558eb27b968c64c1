package console

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// Selections returns the file of the selected stacks.
func (s *Session) Selections() project.Selections { return project.DefaultSelections(s.Variable) }

// defaults returns the organization and project for a stack's name that leaves them out. It loads the project.
func (s *Session) defaults() (deployments.StackName, error) {
	name := deployments.StackName{Organization: s.Settings.Get(settings.Organization)}
	if err := s.NeedProject(); err != nil {
		return name, err
	}
	name.Project = s.Project.Name()
	return name, nil
}

// ParseStack parses a stack's name as users write it. Outside a project the name must be complete.
func (s *Session) ParseStack(text string) (deployments.StackName, error) {
	defaults, err := s.defaults()
	if err != nil && strings.Count(text, "/") < 2 {
		return defaults, err
	}
	name, err := deployments.ParseStackName(text, defaults)
	if err == nil && s.Project != nil && name.Project != s.Project.Name() {
		s.Project = nil // the stack belongs to another project: do not use this project's files
	}
	return name, err
}

// TwoParts refuses a name of two parts, which is ORG/STACK, for a new stack if nothing is known of the organization:
// most likely PROJECT/STACK is meant. A new organization is named with all three parts.
func (s *Session) TwoParts(ctx context.Context, text string, name deployments.StackName) error {
	if strings.Count(text, "/") != 1 || !s.strange(ctx, name) {
		return nil
	}
	return deployments.Errorf(deployments.CodeInvalid, "%s is ORG/STACK, and no stack is in an organization %s; write "+
		"all three parts: %s for a stack of the project %s, or %s", text, name.Organization, s.asProject(name),
		name.Organization, name)
}

// strange reports whether a name is of another organization than the command's, and that has no stack.
func (s *Session) strange(ctx context.Context, name deployments.StackName) bool {
	if name.Organization == s.Settings.Get(settings.Organization) {
		return false
	}
	list, err := s.Service.ListStacks(ctx, name.Organization, "")
	return err == nil && len(list) == 0
}

// asProject reads what is the organization of a name as a project of the command's organization.
func (s *Session) asProject(name deployments.StackName) deployments.StackName {
	return deployments.StackName{Organization: s.Settings.Get(settings.Organization), Project: name.Organization,
		Stack: name.Stack}
}

// Elsewhere is the error that the command needs files of a stack's project, and its directory has another project.
func (s *Session) Elsewhere(name deployments.StackName) error {
	found, err := project.Find(s.WorkDir)
	if err != nil {
		return err
	}
	return deployments.Errorf(deployments.CodeInvalid, "stack %s is of the project %s, and %s is of the project %s; "+
		"change to the directory of %s, or correct the name in Pulumi.yaml if you have renamed the project", name,
		name.Project, found.Dir, found.Name(), name.Project)
}

// named returns the stack that the user names by flag or variable; false if none.
func (s *Session) named() (deployments.StackName, bool, error) {
	text := s.Flags.String("stack")
	if text == "" {
		text = s.Variable("DEPLOYCTL_STACK")
	}
	if text == "" {
		return deployments.StackName{}, false, nil
	}
	name, err := s.ParseStack(text)
	return name, true, err
}

// StackName returns the command's stack: the named one, the selected one, or the only one. It does not check whether a
// named one exists.
func (s *Session) StackName(ctx context.Context) (deployments.StackName, error) {
	if name, ok, err := s.named(); ok || err != nil {
		return name, err
	}
	if err := s.NeedProject(); err != nil {
		return deployments.StackName{}, err
	}
	selected, err := s.Selections().Selected(s.Project)
	if err != nil {
		return deployments.StackName{}, err
	}
	if selected != "" {
		return s.ParseStack(selected)
	}
	return s.OnlyStack(ctx)
}

// StackArgument returns the stack that the argument names, or --stack; "" if neither does.
func (s *Session) StackArgument() (string, error) {
	argument, flag := s.Flags.Args().First(), s.Flags.String("stack")
	if argument != "" && flag != "" && argument != flag {
		return "", deployments.Errorf(deployments.CodeInvalid, "the argument names the stack %s, and --stack names %s; pass "+
			"one of them", argument, flag)
	}
	return cmp.Or(argument, flag), nil
}

// OnlyStack returns the project's stack if it has exactly one; if it has several, it asks the user.
func (s *Session) OnlyStack(ctx context.Context) (deployments.StackName, error) {
	if err := s.Dial(ctx); err != nil {
		return deployments.StackName{}, err
	}
	list, err := s.Service.ListStacks(ctx, s.Settings.Get(settings.Organization), s.Project.Name())
	if err != nil {
		return deployments.StackName{}, err
	}
	switch len(list) {
	case 0:
		return deployments.StackName{}, deployments.Errorf(deployments.CodeNotFound,
			"project %s has no stack; create one with deployctl stack init NAME", s.Project.Name())
	case 1:
		return list[0].Stack, nil
	}
	names := make([]string, len(list))
	for i, info := range list {
		names[i] = info.Stack.Stack
	}
	return s.chosenStack(ctx, strings.Join(names, ", "))
}

// chosenStack asks which of several stacks is meant.
func (s *Session) chosenStack(ctx context.Context, names string) (deployments.StackName, error) {
	if !s.Asks() {
		return deployments.StackName{}, deployments.Errorf(deployments.CodeInvalid,
			"project %s has several stacks (%s) and none is selected; pass --stack, or run deployctl stack select",
			s.Project.Name(), names)
	}
	answer, _, err := s.Ask(ctx, fmt.Sprintf("Which stack (%s)? ", names))
	if err != nil {
		return deployments.StackName{}, err
	}
	return s.ParseStack(answer)
}

// ConnectedStack returns the command's stack, and connects to the service. What is wrong on this side is said before
// that: an embedded service is not started for it.
func (s *Session) ConnectedStack(ctx context.Context) (deployments.StackName, error) {
	name, err := s.StackName(ctx)
	if err == nil {
		err = s.Dial(ctx)
	}
	return name, err
}

// KnownStack returns the command's stack from the service.
func (s *Session) KnownStack(ctx context.Context) (deployments.StackInfo, error) {
	name, err := s.ConnectedStack(ctx)
	if err != nil {
		return deployments.StackInfo{}, err
	}
	info, err := s.Service.Stack(ctx, name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return info, s.UnknownStack(ctx, name)
	}
	return info, err
}

// UnknownStack returns the error that a stack does not exist. It suggests a similar stack or, if there is none, how to
// create it.
func (s *Session) UnknownStack(ctx context.Context, name deployments.StackName) error {
	if meant := s.MeantStack(ctx, name); meant != "" {
		return deployments.Errorf(deployments.CodeNotFound, "there is no stack %s; did you mean %s?", name, meant)
	}
	if s.strange(ctx, name) {
		return deployments.Errorf(deployments.CodeNotFound, "there is no stack %s, nor any other in the "+
			"organization %s; for a stack of a project %s write %s, or create it with deployctl stack init %s", name,
			name.Organization, name.Organization, s.asProject(name), name)
	}
	short := name.Stack
	if parsed, err := s.ParseStack(short); err != nil || parsed != name {
		short = name.String() // of another organization or project than the command's
	}
	return deployments.Errorf(deployments.CodeNotFound, "there is no stack %s; see deployctl stack ls, or create it "+
		"with deployctl stack init %s%s", name, short, s.wasThere(name))
}

// wasThere says what to do about a stack that the service does not know, and of which the project has the
// configuration: its state may have been lost.
func (s *Session) wasThere(name deployments.StackName) string {
	if s.Project == nil || s.Project.Name() != name.Project {
		return ""
	}
	file, err := s.Project.Stack(name.Stack)
	if err == nil {
		_, err = os.Stat(file.Path)
	}
	if err != nil {
		return "" // a file that is damaged is said by the commands that need it
	}
	return fmt.Sprintf(". %s is there: if the service has lost the stack, deployctl up --adopt then takes in what "+
		"exists; if the stack had been renamed, stack init needs its first name, --identity ORG/PROJECT/STACK "+
		"(docs/convergence.md#after-you-have-lost-everything)", filepath.Base(file.Path))
}

// MeantStack returns the name of the project's stack that is most similar to one that does not exist.
func (s *Session) MeantStack(ctx context.Context, name deployments.StackName) string {
	list, err := s.Service.ListStacks(ctx, name.Organization, name.Project)
	if err != nil {
		return "" // the message then has no suggestion
	}
	var names []string
	for _, info := range list {
		names = append(names, info.Stack.Stack)
	}
	return nearest(name.Stack, names)
}
