package update

import (
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// updateFlags returns the flags of up, preview, refresh and destroy, and more.
func updateFlags(more ...cli.Flag) []cli.Flag {
	return console.OnStack(append(append(more, console.SelectionFlags()...), console.JSONFlag, console.QuietFlag, diffFlag,
		parallelFlag,
		messageFlag, configFlag, configPathFlag, console.ConfigFileFlag,
	)...)
}

// changeExits describes the exit codes of the commands that change a stack.
const changeExits = "Exit codes: 0 the update succeeded, 1 it failed, 3 it was cancelled or you declined, 4 the " +
	"stack was busy (--on-busy fail) or a preview or plan does not hold any more, 130 you " +
	"interrupted the command, and the update continues."

// changeFlags returns the flags of the commands that change a stack, and more.
func changeFlags(more ...cli.Flag) []cli.Flag {
	return updateFlags(append(more, console.YesFlag,
		&cli.BoolFlag{Name: "skip-preview", Aliases: []string{"f"}, Usage: "update without a preview"},
		onBusyFlag,
		&cli.StringFlag{Name: "on-unknown", Usage: "`MODE` when it is unknown whether a resource was created: wait " +
			"(for deployctl resolve) or fail; not set: wait on a terminal, else fail"},
		console.ContinueOnErrorFlag,
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
	onBusyFlag     = &cli.StringFlag{Name: "on-busy", Usage: "`MODE` when the stack has another update: queue (wait " +
		"for it), fail, or supersede (replace waiting ones)", Value: "queue"}
	refreshFlag       = &cli.BoolFlag{Name: "refresh", Aliases: []string{"r"}, Usage: "refresh every resource first"}
	ignoreProtectFlag = &cli.BoolFlag{Name: "ignore-protect", Usage: "delete and replace protected resources like any " +
		"other"}
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
