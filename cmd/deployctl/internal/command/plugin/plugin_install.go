package plugin

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/urfave/cli/v2"
)

// installCommand returns deployctl install.
func installCommand(s *console.Env) *cli.Command {
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
		Action: console.Action(s, runInstall),
	}
}

var (
	reinstallFlag = &cli.BoolFlag{Name: "reinstall", Usage: "download and install again, and accept what has changed " +
		"since it was pinned"}
	platformFlag = &cli.StringSliceFlag{Name: "platform",
		Usage: "also pin the release for `PLATFORM`, such as linux-amd64; may be repeated"}
)

func runInstall(ctx context.Context, s *console.Session) error {
	p, err := pluginArgument(s)
	if err != nil {
		return err
	}
	i, err := pluginInstaller(s)
	if err != nil {
		return err
	}
	switch file := s.Flags.String("file"); {
	case p.Kind == "" && file == "" && s.Flags.String("server") == "" && s.Flags.String("checksum") == "":
		return installProject(ctx, s, i, false, true)
	case p.Name == "" || file != "" && p.Version == "":
		return deployments.Errorf(deployments.CodeInvalid, "name the plugin by KIND and NAME, and with --file by VERSION, "+
			"too")
	case file != "":
		if err := i.InstallFile(p, s.Path(file)); err != nil {
			return deployments.Errorf(deployments.CodeInvalid, "%s was not installed: %w", p, err)
		}
		s.Say("Installed %s.", p)
		return nil
	}
	r := plugins.Request{Plugin: p, URL: s.Flags.String("server")}
	if sum := s.Flags.String("checksum"); sum != "" {
		r.Sums = map[string]string{string(plugins.Here): sum}
	}
	return errors.Join(installPlugin(ctx, s, i, r), writeLock(s, i))
}

// installPlugin installs one plugin and says so.
func installPlugin(ctx context.Context, s *console.Session, i *plugins.Installer, r plugins.Request) error {
	r, installed, err := i.Install(ctx, r)
	switch {
	case err != nil:
		return deployments.Errorf(deployments.CodeInvalid, "%s was not installed: %w", r.Plugin, err)
	case installed:
		s.Say("Installed %s.", r.Plugin)
	default:
		s.Say("Found %s installed.", r.Plugin)
	}
	return nil
}

// writeLock writes what was pinned to the project's lock file. A project without plugins gets none.
func writeLock(s *console.Session, i *plugins.Installer) error {
	if i.Lock == nil || !i.Lock.Changed() {
		return nil
	}
	if err := project.ChangeFile(lockPath(s), i.Lock.Onto); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%s cannot be written: %w", lockPath(s), err)
	}
	return nil
}
