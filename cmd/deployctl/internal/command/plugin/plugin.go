package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"github.com/urfave/cli/v2"
)

// Command returns deployctl plugin.
func Command(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "plugin", Usage: "install, list and remove provider plugins and language hosts",
		Subcommands: []*cli.Command{installCommand(s), lsCommand(s), rmCommand(s)},
	}
}

// local returns the flags of every command that works on this machine alone, and more.
func local(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{console.CwdFlag, console.SettingsFlag}, more...)
}

// lsCommand returns deployctl ls.
func lsCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "ls", Usage: "list the plugins that are installed in the Pulumi home, or those in the project's lock file",
		Flags: local(console.JSONFlag, &cli.BoolFlag{Name: "project", Aliases: []string{"p"},
			Usage: "list the plugins of deployctl.lock"}),
		Action: console.Action(s, runLs),
	}
}

// rmCommand returns deployctl rm.
func rmCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "remove plugins from the Pulumi home", ArgsUsage: "[KIND [NAME [VERSION]]]",
		Description: "KIND is resource, language, analyzer, converter or tool. Without VERSION all versions are " +
			"removed, without NAME all plugins of the kind. The lock files of projects stay as they are.",
		Flags: local(console.YesFlag, console.NonInteractiveFlag, &cli.BoolFlag{Name: "all", Aliases: []string{"a"},
			Usage: "remove every plugin"}),
		Action: console.Action(s, runRm),
	}
}

// pluginDir returns the directory of installed plugins in the Pulumi home.
func pluginDir(s *console.Session) string {
	home := s.Variable("PULUMI_HOME")
	if home == "" {
		home = filepath.Join(s.Variable("HOME"), ".pulumi")
	}
	return filepath.Join(home, "plugins")
}

// installedPlugins returns the plugins that are installed, sorted.
func installedPlugins(s *console.Session) ([]plugins.Plugin, error) {
	found, err := workspace.GetPluginsFromDir(pluginDir(s)) //nolint:forbidigo // the user's own
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the installed plugins cannot be listed: %w", err)
	}
	var all []plugins.Plugin
	for _, p := range found {
		if p.Version != nil {
			all = append(all, plugins.Plugin{Kind: p.Kind, Name: p.Name, Version: p.Version.String()})
		}
	}
	slices.SortFunc(all, func(a, b plugins.Plugin) int { return strings.Compare(a.Dir(), b.Dir()) })
	return all, nil
}

// listedPlugin is a plugin in --json.
type listedPlugin struct {
	Kind    string                      `json:"kind"`
	Name    string                      `json:"name"`
	Version string                      `json:"version"`
	SHA256  map[plugins.Platform]string `json:"sha256,omitempty"` // of the lock
}

func runLs(_ context.Context, s *console.Session) error {
	list := []listedPlugin{}
	if s.Flags.Bool("project") {
		if err := s.NeedProject(); err != nil {
			return err
		}
		lock, err := pluginLock(s)
		if err != nil {
			return err
		}
		for _, p := range lock.Plugins {
			list = append(list, listedPlugin{string(p.Kind), p.Name, p.Version, p.SHA256})
		}
	} else {
		installed, err := installedPlugins(s)
		if err != nil {
			return err
		}
		for _, p := range installed {
			list = append(list, listedPlugin{Kind: string(p.Kind), Name: p.Name, Version: p.Version})
		}
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"KIND", "NAME", "VERSION"}}
	for _, p := range list {
		rows = append(rows, []string{p.Kind, p.Name, p.Version})
	}
	return s.SayTable(rows)
}

// lockPath returns the path of the project's lock file.
func lockPath(s *console.Session) string { return filepath.Join(s.Project.Dir, plugins.LockFile) }

// pluginLock reads the lock file of the project; an empty one if there is none.
func pluginLock(s *console.Session) (*plugins.Lock, error) {
	text, err := os.ReadFile(lockPath(s))
	if errors.Is(err, fs.ErrNotExist) {
		return &plugins.Lock{}, nil
	}
	var lock *plugins.Lock
	if err == nil {
		lock, err = plugins.ParseLock(text)
	}
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	return lock, nil
}

// pluginArgument reads KIND, NAME and VERSION, as far as they are given. NAME may be NAME@VERSION.
func pluginArgument(s *console.Session) (plugins.Plugin, error) {
	args := s.Flags.Args()
	p := plugins.Plugin{Kind: apitype.PluginKind(args.Get(0)), Name: args.Get(1),
		Version: strings.TrimPrefix(args.Get(2), "v")}
	if name, version, ok := strings.Cut(p.Name, "@"); ok && p.Version == "" {
		p.Name, p.Version = name, strings.TrimPrefix(version, "v")
	}
	if args.Len() > 3 {
		return p, deployments.Errorf(deployments.CodeInvalid, "there are too many arguments: give KIND, NAME and VERSION")
	}
	if p.Kind != "" && !apitype.IsPluginKind(string(p.Kind)) {
		return p, deployments.Errorf(deployments.CodeInvalid,
			"%q is not a kind of plugins: use resource, language, analyzer, converter or tool", p.Kind)
	}
	return p, nil
}

func runRm(ctx context.Context, s *console.Session) error {
	which, err := pluginArgument(s)
	if err != nil {
		return err
	}
	if (which.Kind == "") != s.Flags.Bool("all") {
		return deployments.Errorf(deployments.CodeInvalid, "name what to remove by KIND, NAME and VERSION, or give --all")
	}
	all, err := installedPlugins(s)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(p plugins.Plugin) bool {
		return which.Kind != "" && p.Kind != which.Kind || which.Name != "" && p.Name != which.Name ||
			which.Version != "" && p.Version != which.Version
	})
	if len(all) == 0 {
		return deployments.Errorf(deployments.CodeNotFound, "no such plugin is installed; `deployctl plugin ls` lists "+
			"those that are")
	}
	question := fmt.Sprintf("Remove %s, %s among them?", console.Counted(len(all), "plugin", "plugins"), all[0])
	if len(all) == 1 {
		question = fmt.Sprintf("Remove %s?", all[0])
	}
	if !s.Flags.Bool("yes") {
		if err := s.MustAsk(); err != nil {
			return err
		}
		if err := s.Confirm(ctx, question, nil); err != nil {
			return err
		}
	}
	for _, p := range all {
		if err := os.RemoveAll(filepath.Join(pluginDir(s), p.Dir())); err != nil {
			return deployments.Errorf(deployments.CodeInvalid, "%s cannot be removed: %w", p, err)
		}
		s.Say("Removed %s.", p)
	}
	return nil
}

// pluginInstaller returns the installer for this machine, with the lock of the project if there is one.
func pluginInstaller(s *console.Session) (*plugins.Installer, error) {
	network, err := plugins.ParseNetwork(s.Settings.Get(settings.PluginsDownload),
		s.Settings.Get(settings.PluginsPrivateHosts))
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s: %w", settings.PluginsDownload, err)
	}
	if network != nil {
		network.Private = true // the user of this machine has chosen the address
	}
	i := &plugins.Installer{Network: network, Dir: pluginDir(s), Token: s.Variable("GITHUB_TOKEN"),
		Reinstall: s.Flags.Bool("reinstall")}
	for _, platform := range s.Flags.StringSlice("platform") {
		i.Platforms = append(i.Platforms, plugins.Platform(platform))
	}
	if err := s.NeedProject(); err == nil {
		i.Lock, err = pluginLock(s)
		if err != nil {
			return nil, err
		}
	}
	return i, nil
}
