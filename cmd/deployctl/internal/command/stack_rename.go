package command

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/urfave/cli/v2"
)

func stackRenameCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "rename", Usage: "rename the stack; its resources stay", ArgsUsage: "NEW",
		Description: "NEW is STACK, ORG/STACK or ORG/PROJECT/STACK. In the directory of the stack's project, its " +
			"configuration file gets the new name, its keys of the project's own the new project, and the selection " +
			"follows. Of a new project, write the name into Pulumi.yaml, too.",
		Flags:  onStack(),
		Action: action(s, runStackRename),
	}
}

func runStackRename(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	from, text := info.Stack, s.flags.Args().First()
	to, err := deployments.ParseStackName(text, from)
	if err != nil {
		return err
	}
	if from.Organization != to.Organization {
		if err := s.twoParts(ctx, text, to); err != nil {
			return err
		}
	}
	files, err := s.renaming(from, to)
	if err != nil {
		return err
	}
	if err := s.service.RenameStack(ctx, deployments.RenameRequest{From: from, To: to,
		Initiator: initiator()}); err != nil {
		return err
	}
	s.say("Stack %s is now %s.", from, to)
	if files == nil {
		return nil
	}
	return s.bring(files, from, to)
}

// renaming are the files of a project that follow a stack to another name.
type renaming struct {
	here  *project.Project
	stack *project.Stack // with the new keys, not saved
	moved []config.Key   // the new keys
	path  string         // the configuration's new one
}

// renaming finds the files that follow the stack, and fails if the new name has files or keys already; nil without a
// project.
func (s *session) renaming(from, to deployments.StackName) (*renaming, error) {
	here := s.projectOf(from, to)
	if here == nil {
		return nil, nil //nolint:nilnil // nothing follows
	}
	before, err := here.Stack(from.Stack)
	if err != nil {
		return nil, err
	}
	after, err := here.Stack(to.Stack)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(before.Path); err == nil && before.Path != after.Path {
		if _, err := os.Lstat(after.Path); err == nil {
			return nil, deployments.Errorf(deployments.CodeExists, "%s exists already, and %s would take its place; move "+
				"one of them away", after.Path, filepath.Base(before.Path))
		}
	}
	files := &renaming{here: here, stack: before, path: after.Path}
	if from.Project != to.Project {
		files.moved, err = before.MoveKeys(from.Project, to.Project)
	}
	return files, err
}

// projectOf returns the project of the working directory if it is that of the stack that is renamed: under its old
// name, or already under the new one; else nil.
func (s *session) projectOf(from, to deployments.StackName) *project.Project {
	if s.project != nil {
		return s.project
	}
	found, err := project.Find(s.dir)
	if err != nil || found.Name() != to.Project && found.Name() != from.Project {
		return nil
	}
	return found
}

// bring makes the project's files follow a stack that has another name: its configuration, and the selection.
func (s *session) bring(files *renaming, from, to deployments.StackName) error {
	before := files.stack.Path
	if len(files.moved) > 0 {
		if err := files.stack.Save(); err != nil {
			return err
		}
		s.say("%s: %s now of the project %s: %s.", filepath.Base(before), counted(len(files.moved), "key is", "keys are"),
			to.Project, files.moved)
	}
	if err := os.Rename(before, files.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	selected, err := s.selections().Selected(files.here)
	if err != nil {
		return err
	}
	if selected == from.String() {
		if err := s.selections().Select(files.here, to.String()); err != nil {
			return err
		}
	}
	if files.here.Name() != to.Project {
		s.say("Write the new name of the project into %s: \"name: %s\".", files.here.File, to.Project)
	}
	return nil
}
