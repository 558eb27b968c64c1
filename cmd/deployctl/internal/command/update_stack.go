package command

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// existingStack returns the stack of an update. On a terminal, it offers to create a stack that does not exist.
func (s *session) existingStack(ctx context.Context) (deployments.StackInfo, error) {
	name, err := s.connectedStack(ctx)
	if deployments.CodeOf(err) == deployments.CodeNotFound && s.asks() {
		return s.offerStack(ctx)
	}
	if err != nil {
		return deployments.StackInfo{}, err
	}
	info, err := s.service.Stack(ctx, name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		if s.asks() && !s.flags.Bool("yes") && s.meantStack(ctx, name) == "" {
			if err := s.confirm(ctx, fmt.Sprintf("There is no stack %s. Create it?", name), nil); err != nil {
				return info, err
			}
			return s.createStack(ctx, name)
		}
		return info, s.unknownStack(ctx, name)
	}
	return info, err
}

// warnOfOtherDirectory warns before an up if the stack was last updated from another directory with a project of the
// same name, such as a copy: resources that only that program declares are deleted.
func (s *session) warnOfOtherDirectory(kind engine.Kind, stack deployments.StackInfo) {
	if kind != engine.KindUp || s.project == nil || stack.Version == 0 {
		return
	}
	other := s.selections().OtherDirectory(s.project, s.settings.Get(settings.Server), stack.Stack.String())
	if other != "" {
		s.note(fmt.Sprintf("warning: stack %s was last updated from %s, whose project is also named %s; "+
			"resources that only its program declares are deleted", stack.Stack, other, s.project.Name()))
	}
}

// sameBackend fails if the project says that its stacks are elsewhere and this one is empty: all would be created
// a second time. Of one that has a state it only warns.
func (s *session) sameBackend(stack deployments.StackInfo) error {
	if s.project == nil {
		return nil
	}
	other := s.project.OtherBackend(s.settings.Get(settings.Server), "127.0.0.1", "localhost")
	switch {
	case other == "":
		return nil
	case stack.Version == 0:
		return deployments.Errorf(deployments.CodeInvalid, "%s says that the project's stacks are in %s (backend), and "+
			"%s is new: an update would create everything again. Move the stack here with pulumi stack export and deployctl "+
			"stack import, or remove backend from the file", s.project.File, other, stack.Stack)
	}
	s.note(fmt.Sprintf("warning: %s says that the project's stacks are in %s (backend), which deployctl does not use: "+
		"this is %s of deployctl's service", s.project.File, other, stack.Stack))
	return nil
}

// rememberDirectory records the directory for warnOfOtherDirectory. An error is ignored: it must not fail an update.
func (s *session) rememberDirectory(stack deployments.StackName) {
	_ = s.selections().Updated(s.project, s.settings.Get(settings.Server), stack.String())
}

// offerStack asks for the name of the project's first stack, and creates it.
func (s *session) offerStack(ctx context.Context) (deployments.StackInfo, error) {
	answer, ok, err := s.Ask(ctx, fmt.Sprintf("Project %s has no stack yet. Name of the first one [dev]: ",
		s.project.Name()))
	if err != nil {
		return deployments.StackInfo{}, err
	}
	if !ok {
		return deployments.StackInfo{}, s.declined()
	}
	if answer == "" {
		answer = "dev"
	}
	name, err := s.parseStack(answer)
	if err != nil {
		return deployments.StackInfo{}, err
	}
	return s.createStack(ctx, name)
}

// createStack creates a stack and selects it.
func (s *session) createStack(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	if err := s.service.CreateStack(ctx, name, nil); err != nil {
		return deployments.StackInfo{}, err
	}
	if s.project != nil {
		if err := s.selections().Select(s.project, name.String()); err != nil {
			return deployments.StackInfo{}, err
		}
	}
	s.note("Created stack " + name.String() + ".")
	return deployments.StackInfo{Stack: name}, nil
}
