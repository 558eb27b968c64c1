package command

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/urfave/cli/v2"
)

func pluginInstallCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "install", Usage: "install a plugin, or all plugins of the project, and pin them in its lock file",
		ArgsUsage: "[KIND NAME [VERSION]]",
		Description: "Plugins are installed in the Pulumi home, and pinned in deployctl.lock beside Pulumi.yaml: the " +
			"version, and the SHA-256 digest of the release for this platform and each --platform. Workers accept no " +
			"other release of a pinned plugin. Without VERSION the lock's is installed, or the newest. Without KIND " +
			"and NAME, the packages that the program needs are installed.",
		Flags: local(reinstallFlag, platformFlag,
			&cli.StringFlag{Name: "server", Usage: "download from `URL`: https://, github://HOST/OWNER[/REPOSITORY] or " +
				"gitlab://HOST/PROJECT"},
			&cli.StringFlag{Name: "checksum", Usage: "accept only a release for this platform with this `SHA-256` digest"},
			&cli.StringFlag{Name: "file", Aliases: []string{"f"},
				Usage: "install from `FILE`, the archive of a release or an executable, and pin nothing"}),
		Action: action(s, runPluginInstall),
	}
}

var (
	reinstallFlag = &cli.BoolFlag{Name: "reinstall", Usage: "download and install again, and accept what has changed " +
		"since it was pinned"}
	platformFlag = &cli.StringSliceFlag{Name: "platform",
		Usage: "also pin the release for `PLATFORM`, such as linux-amd64; may be repeated"}
)

func runPluginInstall(ctx context.Context, s *session) error {
	p, err := s.pluginArgument()
	if err != nil {
		return err
	}
	i, err := s.pluginInstaller()
	if err != nil {
		return err
	}
	switch file := s.flags.String("file"); {
	case p.Kind == "" && file == "" && s.flags.String("server") == "" && s.flags.String("checksum") == "":
		return s.installProject(ctx, i, false, true)
	case p.Name == "" || file != "" && p.Version == "":
		return deployments.Errorf(deployments.CodeInvalid, "name the plugin by KIND and NAME, and with --file by VERSION, "+
			"too")
	case file != "":
		if err := i.InstallFile(p, s.path(file)); err != nil {
			return deployments.Errorf(deployments.CodeInvalid, "%s was not installed: %w", p, err)
		}
		s.say("Installed %s.", p)
		return nil
	}
	r := plugins.Request{Plugin: p, URL: s.flags.String("server")}
	if sum := s.flags.String("checksum"); sum != "" {
		r.Sums = map[string]string{string(plugins.Here): sum}
	}
	return errors.Join(s.installPlugin(ctx, i, r), s.writeLock(i))
}

// installPlugin installs one plugin and says so.
func (s *session) installPlugin(ctx context.Context, i *plugins.Installer, r plugins.Request) error {
	r, installed, err := i.Install(ctx, r)
	switch {
	case err != nil:
		return deployments.Errorf(deployments.CodeInvalid, "%s was not installed: %w", r.Plugin, err)
	case installed:
		s.say("Installed %s.", r.Plugin)
	default:
		s.say("Found %s installed.", r.Plugin)
	}
	return nil
}

// writeLock writes what was pinned to the project's lock file. A project without plugins gets none.
func (s *session) writeLock(i *plugins.Installer) error {
	if i.Lock == nil || !i.Lock.Changed() {
		return nil
	}
	if err := project.ChangeFile(s.lockPath(), i.Lock.Onto); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%s cannot be written: %w", s.lockPath(), err)
	}
	return nil
}
