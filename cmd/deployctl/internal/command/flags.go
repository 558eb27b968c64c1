package command

import (
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// Flags of several commands.
var (
	stackFlag = &cli.StringFlag{Name: "stack", Aliases: []string{"s"},
		Usage: "`STACK`, ORG/STACK or ORG/PROJECT/STACK; not set: DEPLOYCTL_STACK, or the selected stack"}
	cwdFlag   = &cli.StringFlag{Name: "cwd", Aliases: []string{"C"}, Usage: "run as if started in `DIR`"}
	jsonFlag  = &cli.BoolFlag{Name: "json", Aliases: []string{"j"}, Usage: "print JSON"}
	quietFlag = &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"},
		Usage: "print only errors, warnings and the summary"}
	yesFlag = &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask for confirmation"}

	nonInteractiveFlag = &cli.BoolFlag{Name: "non-interactive", Usage: "never ask questions, and print lines instead " +
		"of a live display"}
	showSecretsFlag = &cli.BoolFlag{Name: "show-secrets", Usage: "print secrets in plain text"}
	settingsFlag    = &cli.StringFlag{Name: "settings", Usage: "read settings from `FILE`; not set: " +
		"DEPLOYCTL_SETTINGS, or ${XDG_CONFIG_HOME}/deployctl/config.yaml"}
	secretsProviderFlag = &cli.StringFlag{Name: "secrets-provider", Usage: "encrypt secrets with `PROVIDER`: default " +
		"(the service's own key), passphrase, or a key such as awskms://alias/NAME", Value: "default"}
	limitFlag = &cli.IntFlag{Name: "limit", Usage: "list at most `N`", Value: 20}
	pathFlag  = &cli.BoolFlag{Name: "path", Usage: "KEY is a path into a value, such as servers[0].port"}
)

// common returns the flags of every command that calls a service, and more.
func common(more ...cli.Flag) []cli.Flag {
	return append(append([]cli.Flag{cwdFlag, settingsFlag, nonInteractiveFlag}, SettingFlags(settings.ForClient)...),
		more...)
}

// onStack returns the flags of every command that is about one stack, and more.
func onStack(more ...cli.Flag) []cli.Flag { return common(append(more, stackFlag)...) }

// SettingFlags returns the flags of the settings of some groups; secrets have no flag.
func SettingFlags(groups ...settings.Group) []cli.Flag {
	var flags []cli.Flag
	for _, d := range settings.Table {
		for _, g := range groups {
			if d.Group == g && !d.Secret {
				flags = append(flags, &cli.StringFlag{Name: d.Key.Flag(), Usage: d.Usage,
					Category: "Settings (deployctl settings)"})
			}
		}
	}
	return flags
}

// selectionFlags returns the flags that restrict an update to some resources.
func selectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "target", Aliases: []string{"t"},
			Usage: "restrict the update to this `URN`, or the NAME of a resource; * stands for any text " +
				"without a colon, ** for any, as in **::NAME; may be repeated"},
		&cli.BoolFlag{Name: "target-dependents", Usage: "include the dependents of targets"},
		&cli.StringSliceFlag{Name: "exclude", Aliases: []string{"x"},
			Usage: "leave the resource with this `URN` or name as it is; * and ** as in --target; may be " +
				"repeated; not with --target"},
		&cli.BoolFlag{Name: "exclude-dependents", Usage: "leave the dependents of excluded resources as they are, too"},
	}
}

// continueOnErrorFlag goes on after errors.
var continueOnErrorFlag = &cli.BoolFlag{Name: "continue-on-error",
	Usage: "continue with everything that does not depend on a failed step"}

// Flags of updates, and of schedules or configurations too.
var (
	configFileFlag = &cli.StringFlag{Name: "config-file", Usage: "read and write the stack's configuration in `FILE`; " +
		"not set: Pulumi.STACK.yaml"}
	excludeProtectedFlag = &cli.BoolFlag{Name: "exclude-protected", Usage: "of a destroy: keep protected resources, " +
		"and what they depend on"}
	runProgramFlag = &cli.BoolFlag{Name: "run-program", Usage: "of a refresh or a destroy: run the program, so that " +
		"providers get the configuration that it computes now"}
)
