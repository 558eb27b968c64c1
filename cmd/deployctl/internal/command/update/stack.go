package update

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// existingStack returns the stack of an update. On a terminal, it offers to create a stack that does not exist.
func existingStack(ctx context.Context, s *console.Session) (deployments.StackInfo, error) {
	return stackBeside(ctx, s, func(deployments.StackName) {})
}

// stackAndFiles is existingStack that gathers the project's files meanwhile. The caller ends that.
func stackAndFiles(
	ctx context.Context, s *console.Session,
) (stack deployments.StackInfo, early *earlyBundle, err error) {
	stack, err = stackBeside(ctx, s, func(name deployments.StackName) { early = gatherEarly(ctx, s, name) })
	return stack, early, err
}

// stackBeside is existingStack that begins something else before it asks for the stack.
func stackBeside(
	ctx context.Context, s *console.Session, begin func(deployments.StackName),
) (deployments.StackInfo, error) {
	name, err := s.ConnectedStack(ctx)
	if deployments.CodeOf(err) == deployments.CodeNotFound && s.Asks() {
		return offerStack(ctx, s)
	}
	if err != nil {
		return deployments.StackInfo{}, err
	}
	begin(name)
	info, err := s.Service.Stack(ctx, name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		if s.Asks() && !s.Flags.Bool("yes") && s.MeantStack(ctx, name) == "" {
			if err := s.Confirm(ctx, fmt.Sprintf("There is no stack %s. Create it?", name), nil); err != nil {
				return info, err
			}
			return createStack(ctx, s, name)
		}
		return info, s.UnknownStack(ctx, name)
	}
	return info, err
}

// warnOfOtherDirectory warns before an up if the stack was last updated from another directory with a project of the
// same name, such as a copy: resources that only that program declares are deleted.
func warnOfOtherDirectory(s *console.Session, kind engine.Kind, stack deployments.StackInfo) {
	if kind != engine.KindUp || s.Project == nil || stack.Version == 0 {
		return
	}
	other := s.Selections().OtherDirectory(s.Project, s.Settings.Get(settings.Server), stack.Stack.String())
	if other != "" {
		s.Note(fmt.Sprintf("warning: stack %s was last updated from %s, whose project is also named %s; "+
			"resources that only its program declares are deleted", stack.Stack, other, s.Project.Name()))
	}
}

// sameBackend fails if the project says that its stacks are elsewhere and this one is empty: all would be created
// a second time. Of one that has a state it only warns.
func sameBackend(s *console.Session, stack deployments.StackInfo) error {
	if s.Project == nil {
		return nil
	}
	other := s.Project.OtherBackend(s.Settings.Get(settings.Server), "127.0.0.1", "localhost")
	switch {
	case other == "":
		return nil
	case stack.Version == 0:
		return deployments.Errorf(deployments.CodeInvalid, "%s says that the project's stacks are in %s (backend), and "+
			"%s is new: an update would create everything again. Move the stack here with pulumi stack export and deployctl "+
			"stack import, or remove backend from the file", s.Project.File, other, stack.Stack)
	}
	s.Note(fmt.Sprintf("warning: %s says that the project's stacks are in %s (backend), which deployctl does not use: "+
		"this is %s of deployctl's service", s.Project.File, other, stack.Stack))
	return nil
}

// rememberDirectory records the directory for warnOfOtherDirectory. An error is ignored: it must not fail an update.
func rememberDirectory(s *console.Session, stack deployments.StackName) {
	_ = s.Selections().Updated(s.Project, s.Settings.Get(settings.Server), stack.String())
}

// offerStack asks for the name of the project's first stack, and creates it.
func offerStack(ctx context.Context, s *console.Session) (deployments.StackInfo, error) {
	answer, ok, err := s.Ask(ctx, fmt.Sprintf("Project %s has no stack yet. Name of the first one [dev]: ",
		s.Project.Name()))
	if err != nil {
		return deployments.StackInfo{}, err
	}
	if !ok {
		return deployments.StackInfo{}, s.Declined()
	}
	if answer == "" {
		answer = "dev"
	}
	name, err := s.ParseStack(answer)
	if err != nil {
		return deployments.StackInfo{}, err
	}
	return createStack(ctx, s, name)
}

// createStack creates a stack and selects it.
func createStack(ctx context.Context, s *console.Session, name deployments.StackName) (deployments.StackInfo, error) {
	if err := s.Service.CreateStack(ctx, name, nil); err != nil {
		return deployments.StackInfo{}, err
	}
	if s.Project != nil {
		if err := s.Selections().Select(s.Project, name.String()); err != nil {
			return deployments.StackInfo{}, err
		}
	}
	s.Note("Created stack " + name.String() + ".")
	return deployments.StackInfo{Stack: name}, nil
}
