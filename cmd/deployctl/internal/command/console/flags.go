package console

import (
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// Flags of several commands.
var (
	StackFlag = &cli.StringFlag{Name: "stack", Aliases: []string{"s"},
		Usage: "`STACK`, ORG/STACK or ORG/PROJECT/STACK; not set: DEPLOYCTL_STACK, or the selected stack"}
	CwdFlag   = &cli.StringFlag{Name: "cwd", Aliases: []string{"C"}, Usage: "run as if started in `DIR`"}
	JSONFlag  = &cli.BoolFlag{Name: "json", Aliases: []string{"j"}, Usage: "print JSON"}
	QuietFlag = &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"},
		Usage: "print only errors, warnings and the summary"}
	YesFlag = &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask for confirmation"}

	NonInteractiveFlag = &cli.BoolFlag{Name: "non-interactive", Usage: "never ask questions, and print lines instead " +
		"of a live display"}
	ShowSecretsFlag = &cli.BoolFlag{Name: "show-secrets", Usage: "print secrets in plain text"}
	SettingsFlag    = &cli.StringFlag{Name: "settings", Usage: "read settings from `FILE`; not set: " +
		"DEPLOYCTL_SETTINGS, or ${XDG_CONFIG_HOME}/deployctl/config.yaml"}
	SecretsProviderFlag = &cli.StringFlag{Name: "secrets-provider", Usage: "encrypt secrets with `PROVIDER`: default " +
		"(the service's own key), passphrase, or a key such as awskms://alias/NAME", Value: "default"}
	LimitFlag = &cli.IntFlag{Name: "limit", Usage: "list at most `N`", Value: 20}
	PathFlag  = &cli.BoolFlag{Name: "path", Usage: "KEY is a path into a value, such as servers[0].port"}
)

// Common returns the flags of every command that calls a service, and more.
func Common(more ...cli.Flag) []cli.Flag {
	return append(append([]cli.Flag{CwdFlag, SettingsFlag, NonInteractiveFlag}, SettingFlags(settings.ForClient)...),
		more...)
}

// OnStack returns the flags of every command that is about one stack, and more.
func OnStack(more ...cli.Flag) []cli.Flag { return Common(append(more, StackFlag)...) }

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

// SelectionFlags returns the flags that restrict an update to some resources.
func SelectionFlags() []cli.Flag {
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

// ContinueOnErrorFlag goes on after errors.
var ContinueOnErrorFlag = &cli.BoolFlag{Name: "continue-on-error",
	Usage: "continue with everything that does not depend on a failed step"}

// Flags of updates, and of schedules or configurations too.
var (
	ConfigFileFlag = &cli.StringFlag{Name: "config-file", Usage: "read and write the stack's configuration in `FILE`; " +
		"not set: Pulumi.STACK.yaml"}
	ExcludeProtectedFlag = &cli.BoolFlag{Name: "exclude-protected", Usage: "of a destroy: keep protected resources, " +
		"and what they depend on"}
	RunProgramFlag = &cli.BoolFlag{Name: "run-program", Usage: "of a refresh or a destroy: run the program, so that " +
		"providers get the configuration that it computes now"}
)
