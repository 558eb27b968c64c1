package plugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/project/npmworkspace"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/urfave/cli/v2"
)

// InstallCommand returns deployctl install.
func InstallCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "install", Usage: "install the dependencies and the plugins of the project",
		Description: "The dependencies are installed in the project's directory with the tools of its language, the " +
			"plugins as `deployctl plugin install` does it. An update installs what it needs by itself: this command " +
			"is for editors, tests, and the lock file.",
		Flags: local(reinstallFlag, platformFlag,
			&cli.BoolFlag{Name: "no-dependencies", Usage: "install only plugins"},
			&cli.BoolFlag{Name: "no-plugins", Usage: "install only dependencies"}),
		Action: console.Action(s, func(ctx context.Context, s *console.Session) error {
			i, err := pluginInstaller(s)
			if err != nil {
				return err
			}
			return installProject(ctx, s, i, !s.Flags.Bool("no-dependencies"), !s.Flags.Bool("no-plugins"))
		}),
	}
}

// ownPackages are the packages that deployctl serves itself.
var ownPackages = map[string]bool{"deployctl": true, "pulumi": true}

// installProject installs the dependencies of the project, and the plugins that it needs.
func installProject(
	ctx context.Context, s *console.Session, i *plugins.Installer, dependencies, packages bool,
) (err error) {
	if err := s.NeedProject(); err != nil {
		return err
	}
	fetch := func(ctx context.Context, r plugins.Request) (string, error) {
		r, _, err := i.Install(ctx, r)
		return filepath.Join(i.Dir, r.Plugin.Dir()), err
	}
	host, err := pluginhost.New(pluginhost.Options{
		RootDir: s.Project.Dir, Project: s.Project.Definition, Env: s.Environ, Fetch: fetch,
		Log: func(m pluginhost.Message) { hear(s, m) },
	})
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	defer host.Close(context.WithoutCancel(ctx))
	defer func() { err = errors.Join(err, writeLock(s, i)) }()
	language, err := host.Language(ctx, s.Project.Definition.Runtime.Name())
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	defer language.Close()
	if dependencies {
		if err := language.InstallDependencies(ctx, dependencyDir(s, host.ProgramDir())); err != nil {
			return deployments.Errorf(deployments.CodeInvalid, "%w", err)
		}
	}
	if !packages {
		return nil
	}
	needed, err := language.RequiredPackages(ctx)
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	for _, pkg := range needed {
		request := host.Request(pkg)
		if ownPackages[pkg.Name] || pluginhost.IsDynamic(pkg.Name) || host.Chosen(request) {
			continue
		}
		if err := installPlugin(ctx, s, i, request); err != nil {
			return err
		}
	}
	return nil
}

// dependencyDir returns where the dependencies of a program are installed: for Node, at the root of its workspace.
func dependencyDir(s *console.Session, program string) string {
	if !npmworkspace.Runtime(s.Project.Definition.Runtime.Name()) {
		return program
	}
	top := filepath.VolumeName(program) + string(filepath.Separator)
	dir := npmworkspace.Package(program, top, os.ReadFile)
	if root := npmworkspace.Root(dir, top, os.ReadFile); dir != "" && root != "" {
		return root
	}
	if dir == "" {
		return program
	}
	return dir
}

// hear prints the messages of a language host and its tools.
func hear(s *console.Session, m pluginhost.Message) {
	if m.Severity != diag.Debug {
		s.Note(safetext.Text(m.Text))
	}
}
