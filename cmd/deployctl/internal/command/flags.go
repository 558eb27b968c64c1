package command

import (
	"github.com/deployctl/deployctl/deployments"
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

// updateFlags returns the flags of up, preview, refresh and destroy, and more.
func updateFlags(more ...cli.Flag) []cli.Flag {
	return onStack(append(append(more, selectionFlags()...), jsonFlag, quietFlag, diffFlag, parallelFlag,
		messageFlag, configFlag, configPathFlag, configFileFlag,
	)...)
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

// changeExits describes the exit codes of the commands that change a stack.
const changeExits = "Exit codes: 0 the update succeeded, 1 it failed, 3 it was cancelled or you declined, 4 the " +
	"stack was busy (--on-busy fail) or a preview or plan does not hold any more, 130 you " +
	"interrupted the command, and the update continues."

// changeFlags returns the flags of the commands that change a stack, and more.
func changeFlags(more ...cli.Flag) []cli.Flag {
	return updateFlags(append(more, yesFlag,
		&cli.BoolFlag{Name: "skip-preview", Aliases: []string{"f"}, Usage: "update without a preview"},
		onBusyFlag,
		&cli.StringFlag{Name: "on-unknown", Usage: "`MODE` when it is unknown whether a resource was created: wait " +
			"(for deployctl resolve) or fail; not set: wait on a terminal, else fail"},
		continueOnErrorFlag,
	)...)
}

// Flags of commands that make updates.
var (
	diffFlag = &cli.BoolFlag{Name: "diff", Usage: "show every change, up to 64 KiB a value, and all properties " +
		"of created and deleted resources"}
	parallelFlag = &cli.IntFlag{Name: "parallel", Aliases: []string{"p"}, Usage: "run at most `N` steps at a time",
		Value: deployments.DefaultParallel}
	messageFlag = &cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "`TEXT` to store in the history"}
	configFlag  = &cli.StringSliceFlag{Name: "config", Aliases: []string{"c"},
		Usage: "set `KEY=VALUE` in the stack's configuration first; may be repeated"}
	configPathFlag = &cli.BoolFlag{Name: "path", Usage: "the keys of --config are paths"}
	configFileFlag = &cli.StringFlag{Name: "config-file", Usage: "read and write the stack's configuration in `FILE`; " +
		"not set: Pulumi.STACK.yaml"}
	onBusyFlag = &cli.StringFlag{Name: "on-busy", Usage: "`MODE` when the stack has another update: queue (wait " +
		"for it), fail, or supersede (replace waiting ones)", Value: "queue"}
	refreshFlag       = &cli.BoolFlag{Name: "refresh", Aliases: []string{"r"}, Usage: "refresh every resource first"}
	ignoreProtectFlag = &cli.BoolFlag{Name: "ignore-protect", Usage: "delete and replace protected resources like any " +
		"other"}
	excludeProtectedFlag = &cli.BoolFlag{Name: "exclude-protected", Usage: "of a destroy: keep protected resources, " +
		"and what they depend on"}
	runProgramFlag = &cli.BoolFlag{Name: "run-program", Usage: "of a refresh or a destroy: run the program, so that " +
		"providers get the configuration that it computes now"}
	previewOnlyFlag = &cli.BoolFlag{Name: "preview-only", Usage: "only show a preview"}
	policyPackFlag  = &cli.StringSliceFlag{Name: "policy-pack", Usage: "check the update with the policy pack in " +
		"`DIR`; may be repeated"}
	policyPackConfigFlag = &cli.StringSliceFlag{Name: "policy-pack-config", Usage: "the configuration of a policy pack " +
		"as a JSON `FILE`; once for each --policy-pack, in the same order"}
	expectNoChangesFlag = &cli.BoolFlag{Name: "expect-no-changes", Usage: "exit with 4 if anything would change"}
	adoptFlag           = &cli.BoolFlag{Name: "adopt", Usage: "take over what exists already under the names of what " +
		"would be created, also if it is another owner's; after the loss of a state, look for all that it may have held"}
	forceFlag = &cli.BoolFlag{Name: "force", Usage: "reconcile what has not changed, too, if its provider converges: it " +
		"looks at what exists, and repairs it"}
	replaceFlag = &cli.StringSliceFlag{Name: "replace",
		Usage: "replace the resource with this `URN` or name; may be repeated"}
)
