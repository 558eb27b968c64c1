package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/urfave/cli/v2"
)

// stopPatience is how long dev stop waits for running steps, plugins and servers to end.
const stopPatience = 2 * time.Minute

// quietStop is how long dev stop says nothing.
const quietStop = 2 * time.Second

func devStopCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "stop", Usage: "stop the embedded service; running updates continue when it starts again",
		Flags: []cli.Flag{homeFlag, settingsFlag},
		Action: devAction(s, func(ctx context.Context, d *devCall) error {
			ctx, cancel := context.WithTimeout(ctx, stopPatience)
			defer cancel()
			notice := time.AfterFunc(quietStop, func() {
				d.say("Running steps have half a minute to end; their updates go on when the service starts again.")
			})
			defer notice.Stop()
			err := devserver.Stop(ctx, d.home)
			if errors.Is(err, devserver.ErrNotRunning) {
				d.say("The embedded service is not running.")
				return nil
			}
			if err == nil {
				d.say("The embedded service has stopped; nothing is lost.")
			}
			return err
		}),
	}
}

func devStatusCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show whether the embedded service runs, and its addresses",
		Flags: []cli.Flag{homeFlag, settingsFlag, &cli.BoolFlag{Name: "json", Aliases: []string{"j"},
			Usage: "print JSON"}},
		Action: devAction(s, func(_ context.Context, d *devCall) error {
			status, err := devserver.ReadStatus(d.home)
			if err != nil {
				return err
			}
			if d.flags.Bool("json") {
				encoder := json.NewEncoder(d.Out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(status)
			}
			d.sayStatus(status)
			return nil
		}),
	}
}

// sayStatus prints the state and the addresses of a service.
func (d *devCall) sayStatus(s devserver.Status) {
	if s.State != devserver.Running {
		d.say("The embedded service is %s (%s).", s.State, s.Home)
		return
	}
	d.say("The embedded service is running (process %d).", s.PID)
	if err := devserver.DiskFull(s.Home); err != nil {
		d.say("At the moment %v.", err)
	}
	link := s.UIURL
	if fresh, err := devserver.UILink(s); err == nil {
		link = fresh
	}
	for _, line := range [][2]string{
		{"Temporal Web UI", s.UIURL}, {"open it with", link + " (once, within ten minutes)"},
		{"Temporal", s.TemporalAddress}, {"S3", s.S3Endpoint}, {"API", s.APIAddress}, {"state", s.Home},
		{"stock pulumi", stockLogin(s)}, {"", s.PulumiProblem}, {"console", consoleOf(d.settings, s)},
	} {
		if line[1] != "" {
			d.say("  %-16s %s", line[0], line[1])
		}
	}
	d.say("Stop it with deployctl dev stop; nothing is lost.")
}

// stockLogin is how the stock CLI logs in to a service; empty if it cannot.
func stockLogin(s devserver.Status) string {
	if s.PulumiAddress == "" {
		return ""
	}
	return "PULUMI_ACCESS_TOKEN=$(cat " + s.PulumiTokenFile + ") pulumi login http://" + s.PulumiAddress
}

func devLogsCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print the end of the embedded service's logs", ArgsUsage: "[NAME]",
		Flags: []cli.Flag{homeFlag, settingsFlag, &cli.Int64Flag{Name: "bytes",
			Usage: "print at most `N` bytes of each log", Value: 16 << 10}},
		Action: devAction(s, func(_ context.Context, d *devCall) error {
			status, err := devserver.ReadStatus(d.home)
			if err != nil {
				return err
			}
			logs, err := filepath.Glob(filepath.Join(status.Home, "logs", "*.log"))
			if err != nil {
				return err
			}
			if name := d.flags.Args().First(); name != "" {
				logs = slices.DeleteFunc(logs, func(path string) bool {
					return strings.TrimSuffix(filepath.Base(path), ".log") != name
				})
			}
			if len(logs) == 0 {
				return deployments.Errorf(deployments.CodeNotFound, "%s has no such log",
					filepath.Join(status.Home, "logs"))
			}
			for _, path := range logs {
				d.say("==> %s", path)
				if err := tail(d.Out, path, d.flags.Int64("bytes")); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

// tail copies the last whole lines of a file, at most limit bytes.
func tail(out io.Writer, path string, limit int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	from := max(0, info.Size()-limit)
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(file, limit))
	if err != nil {
		return err
	}
	if _, rest, found := strings.Cut(string(text), "\n"); from > 0 && found {
		text = []byte(rest)
	}
	_, err = out.Write(text)
	return err
}

func devResetCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "reset", Usage: "delete all data of the embedded service; resources that updates created stay, unmanaged",
		Flags: []cli.Flag{homeFlag, settingsFlag, &cli.BoolFlag{Name: "yes", Aliases: []string{"y"},
			Usage: "do not ask for confirmation"}},
		Action: devAction(s, runDevReset),
	}
}

// resetQuestion says what a reset deletes, and what it leaves behind.
func resetQuestion(home string, stacks []devserver.Left) string {
	var text strings.Builder
	fmt.Fprintf(&text, "This deletes the state of every stack in %s", home)
	switch resources := slices.DeleteFunc(slices.Clone(stacks), func(s devserver.Left) bool { return s.Resources == 0 }); {
	case len(stacks) == 0:
		text.WriteString(", which has none")
	case len(resources) == 0:
		fmt.Fprintf(&text, ": %d, none of which has resources", len(stacks))
	default:
		text.WriteString(". These stacks have resources, which stay and which nothing manages any more (deployctl destroy " +
			"removes them):\n")
		for _, s := range resources {
			fmt.Fprintf(&text, "  %s: %d, with the stack itself and its providers\n", s.Stack, s.Resources)
		}
		return text.String() + "Type yes to confirm: "
	}
	return text.String() + ". Type yes to confirm: "
}

func runDevReset(ctx context.Context, d *devCall) error {
	status, err := devserver.ReadStatus(d.home)
	if err != nil {
		return err
	}
	if !d.flags.Bool("yes") {
		if status.State != devserver.Stopped {
			return devError(ctx, &devserver.RunningError{Status: status})
		}
		if !d.Interactive {
			return deployments.Errorf(deployments.CodeInvalid, "this command needs confirmation, but cannot ask for "+
				"it here; pass --yes to confirm")
		}
		stacks, err := devserver.Stacks(status.Home)
		if err != nil {
			return err
		}
		answer, _, err := d.Ask(ctx, resetQuestion(status.Home, stacks))
		if err != nil {
			return err
		}
		if answer != "yes" {
			d.say("Nothing was removed.")
			return console.Declined()
		}
	}
	if err := devserver.Reset(status.Home); err != nil {
		return devError(ctx, err)
	}
	d.say("Removed all state in %s.", status.Home)
	return nil
}
