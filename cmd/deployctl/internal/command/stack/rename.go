package stack

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/urfave/cli/v2"
)

// renameCommand returns deployctl rename.
func renameCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "rename", Usage: "rename the stack; its resources stay", ArgsUsage: "NEW",
		Description: "NEW is STACK, ORG/STACK or ORG/PROJECT/STACK. In the directory of the stack's project, its " +
			"configuration file gets the new name, its keys of the project's own the new project, and the selection " +
			"follows. Of a new project, write the name into Pulumi.yaml, too.",
		Flags:  console.OnStack(),
		Action: console.Action(s, runRename),
	}
}

func runRename(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	from, text := info.Stack, s.Flags.Args().First()
	to, err := deployments.ParseStackName(text, from)
	if err != nil {
		return err
	}
	if from.Organization != to.Organization {
		if err := s.TwoParts(ctx, text, to); err != nil {
			return err
		}
	}
	files, err := readRenaming(s, from, to)
	if err != nil {
		return err
	}
	if err := s.Service.RenameStack(ctx, deployments.RenameRequest{From: from, To: to,
		Initiator: console.Initiator()}); err != nil {
		return err
	}
	s.Say("Stack %s is now %s.", from, to)
	if files == nil {
		return nil
	}
	return bring(s, files, from, to)
}

// renaming are the files of a project that follow a stack to another name.
type renaming struct {
	here  *project.Project
	stack *project.Stack // with the new keys, not saved
	moved []config.Key   // the new keys
	path  string         // the configuration's new one
}

// readRenaming finds the files that follow the stack, and fails if the new name has files or keys already; nil without
// a project.
func readRenaming(s *console.Session, from, to deployments.StackName) (*renaming, error) {
	here := projectOf(s, from, to)
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
func projectOf(s *console.Session, from, to deployments.StackName) *project.Project {
	if s.Project != nil {
		return s.Project
	}
	found, err := project.Find(s.WorkDir)
	if err != nil || found.Name() != to.Project && found.Name() != from.Project {
		return nil
	}
	return found
}

// bring makes the project's files follow a stack that has another name: its configuration, and the selection.
func bring(s *console.Session, files *renaming, from, to deployments.StackName) error {
	before := files.stack.Path
	if len(files.moved) > 0 {
		if err := files.stack.Save(); err != nil {
			return err
		}
		s.Say("%s: %s now of the project %s: %s.", filepath.Base(before), console.Counted(len(files.moved), "key is",
			"keys are"),
			to.Project, files.moved)
	}
	if err := os.Rename(before, files.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	selected, err := s.Selections().Selected(files.here)
	if err != nil {
		return err
	}
	if selected == from.String() {
		if err := s.Selections().Select(files.here, to.String()); err != nil {
			return err
		}
	}
	if files.here.Name() != to.Project {
		s.Say("Write the new name of the project into %s: \"name: %s\".", files.here.File, to.Project)
	}
	return nil
}
