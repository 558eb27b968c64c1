package update

import (
	"bytes"
	"context"
	"io"
	"slices"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/urfave/cli/v2"
)

// LogsCommand returns deployctl logs.
func LogsCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print what the program, the providers and the steps of an update have logged",
		ArgsUsage: "[UPDATE]",
		Description: "UPDATE is ORG/PROJECT/STACK/VERSION, as deployctl prints it, or VERSION; not given: the " +
			"stack's running or latest update. Each line begins with its time.\n" +
			"With --follow, the lines of the stack's next updates come, too, from any client, until Ctrl-C. That " +
			"an update fails does not make the command fail.",
		Flags: console.OnStack(console.JSONFlag, console.QuietFlag,
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with the updates that come later"}),
		Action: console.Action(s, runLogs),
	}
}

// logPause is the pause between two looks for the next update of a stack.
const logPause = time.Second

func runLogs(ctx context.Context, s *console.Session) error {
	follow := s.Flags.Bool("follow")
	if follow {
		var stop func()
		ctx, stop = s.Interruptible(ctx)
		defer stop()
	}
	u, err := updateOf(ctx, s, s.Flags.Args().First(), true)
	if err == nil {
		err = logOf(ctx, s, u)
	}
	if !follow {
		return err
	}
	if deployments.CodeOf(err) == deployments.CodeNotFound && s.Flags.NArg() == 0 { // there is no update yet
		var stack deployments.StackInfo
		stack, err = existingStack(ctx, s)
		u.Update.StackName = stack.Stack
	}
	for last := u.Update.Number(); err == nil && pause(ctx, logPause); {
		var next []deployments.UpdateInfo
		next, err = updatesAfter(ctx, s, u.Update.StackName, last)
		for _, u := range next {
			if err = logOf(ctx, s, u); deployments.CodeOf(err) == deployments.CodeNotFound {
				s.Note(u.Update.String() + " has no log.")
				err = nil
			}
			if err != nil {
				break
			}
			last = u.Update.Number()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// updatesAfter returns the updates of a stack that have a later version, in their order.
func updatesAfter(
	ctx context.Context, s *console.Session, stack deployments.StackName, version int,
) (later []deployments.UpdateInfo, err error) {
	info, err := s.Service.Stack(ctx, stack)
	if err != nil {
		return nil, err
	}
	if info.Version > version {
		history, err := s.Service.History(ctx, stack, info.Version-version)
		if err != nil {
			return nil, err
		}
		later = history
	}
	if info.Active != nil {
		later = append(later, *info.Active)
	}
	later = slices.DeleteFunc(later, func(u deployments.UpdateInfo) bool { return u.Update.Number() <= version })
	slices.SortFunc(later, func(a, b deployments.UpdateInfo) int { return a.Update.Number() - b.Update.Number() })
	return slices.CompactFunc(later, func(a, b deployments.UpdateInfo) bool { return a.Update == b.Update }), nil
}

// logOf prints the log of an update, until the update has ended.
func logOf(ctx context.Context, s *console.Session, u deployments.UpdateInfo) error {
	options := viewOptions(s, u.Kind, projection.NewState())
	options.Screen, options.Heading = nil, u.Update.String()
	out := &stamped{to: s.Out}
	if !options.JSON {
		options.Out = out
	}
	var view display.View
	return s.Service.Watch(ctx, u.Update, func(e deployments.WatchEvent) error {
		switch {
		case e.Event != nil && e.Event.Timestamp > 0:
			out.at = time.Unix(int64(e.Event.Timestamp), 0)
		case e.End != nil:
			out.at = e.End.Ended
		case e.Progress != nil || out.at.IsZero():
			out.at = time.Now()
		}
		if view == nil { // its heading has the time of the first event
			view = display.New(options)
		}
		view.Item(e)
		return nil
	})
}

// stamped begins each line that it writes with a time.
type stamped struct {
	to    io.Writer
	at    time.Time
	below bool // the line has begun
}

func (w *stamped) Write(p []byte) (int, error) {
	var text []byte
	for line := range bytes.Lines(p) {
		if !w.below {
			text = w.at.Local().AppendFormat(text, time.DateTime+" ")
		}
		text = append(text, line...)
		w.below = !bytes.HasSuffix(line, []byte("\n"))
	}
	if _, err := w.to.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
