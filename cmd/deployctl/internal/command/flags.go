package command

import (
	"github.com/deployctl/deployctl/internal/settings"
	"github.com/urfave/cli/v2"
)

// Flags that several commands have.
var (
	stackFlag = &cli.StringFlag{Name: "stack", Aliases: []string{"s"}, Usage: "`STACK`, or ORG/PROJECT/STACK; else DEPLOYCTL_STACK, else the selected one"}
	cwdFlag   = &cli.StringFlag{Name: "cwd", Aliases: []string{"C"}, Usage: "work as if started in `DIR`"}
	jsonFlag  = &cli.BoolFlag{Name: "json", Aliases: []string{"j"}, Usage: "print JSON"}
	quietFlag = &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print errors, warnings and the summary only"}
	yesFlag   = &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}

	nonInteractiveFlag = &cli.BoolFlag{Name: "non-interactive", Usage: "never ask, and draw nothing that moves"}
	showSecretsFlag    = &cli.BoolFlag{Name: "show-secrets", Usage: "print secrets in plain text"}
	settingsFlag       = &cli.StringFlag{Name: "settings", Usage: "configuration `FILE`; else DEPLOYCTL_SETTINGS, else ${XDG_CONFIG_HOME}/deployctl/config.yaml"}
	limitFlag          = &cli.IntFlag{Name: "limit", Usage: "at most `N`", Value: 20}
	pathFlag           = &cli.BoolFlag{Name: "path", Usage: "the key is a path into a value: servers[0].port"}
)

// common are the flags of every command that speaks to a service.
func common(more ...cli.Flag) []cli.Flag {
	return append(append([]cli.Flag{cwdFlag, settingsFlag, nonInteractiveFlag}, SettingFlags(settings.ForClient)...), more...)
}

// onStack are the flags of every command that is about one stack.
func onStack(more ...cli.Flag) []cli.Flag { return common(append(more, stackFlag)...) }

// SettingFlags are the flags of a group's settings; secrets have none.
func SettingFlags(groups ...settings.Group) []cli.Flag {
	var flags []cli.Flag
	for _, d := range settings.Table {
		for _, g := range groups {
			if d.Group == g && !d.Secret {
				flags = append(flags, &cli.StringFlag{Name: d.Key.Flag(), Usage: d.Usage, Category: "Settings (deployctl settings)"})
			}
		}
	}
	return flags
}

// updateFlags are the flags of up, preview, refresh and destroy.
func updateFlags(more ...cli.Flag) []cli.Flag {
	return onStack(append(more, jsonFlag, quietFlag,
		&cli.BoolFlag{Name: "diff", Usage: "show every change in full, and all properties of what is created or deleted"},
		&cli.IntFlag{Name: "parallel", Aliases: []string{"p"}, Usage: "at most `N` steps at a time", Value: 16},
		&cli.StringSliceFlag{Name: "target", Aliases: []string{"t"}, Usage: "only this `URN`; * and ** are wildcards; may be repeated"},
		&cli.BoolFlag{Name: "target-dependents", Usage: "also what depends on a target"},
		&cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "`TEXT` for the history"},
		&cli.StringSliceFlag{Name: "config", Aliases: []string{"c"}, Usage: "set `KEY=VALUE` in the stack's configuration first; may be repeated"},
		&cli.BoolFlag{Name: "path", Usage: "keys of --config are paths"},
	)...)
}

// changeFlags are the flags of what changes a stack.
func changeFlags(more ...cli.Flag) []cli.Flag {
	return updateFlags(append(more, yesFlag,
		&cli.BoolFlag{Name: "skip-preview", Aliases: []string{"f"}, Usage: "do not preview first"},
		&cli.StringFlag{Name: "on-busy", Usage: "`WHAT` to do when the stack has another update: queue, fail or supersede", Value: "queue"},
		&cli.StringFlag{Name: "on-unknown", Usage: "`WHAT` to do when nobody can tell whether something was created: wait for deployctl resolve, or fail; not set: wait if you can be asked"},
		&cli.BoolFlag{Name: "continue-on-error", Usage: "go on with what does not depend on what failed"},
	)...)
}

var (
	refreshFlag = &cli.BoolFlag{Name: "refresh", Aliases: []string{"r"}, Usage: "read every resource first"}
	replaceFlag = &cli.StringSliceFlag{Name: "replace", Usage: "replace this `URN`; may be repeated"}
)
