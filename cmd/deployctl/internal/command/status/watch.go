package status

import (
	"context"
	"reflect"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/urfave/cli/v2"
)

func watchFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: usage}
}

// watch looks once and says what it has found; with --watch it looks again after each pause, and says what has changed,
// until Ctrl-C.
func watch[T any](
	ctx context.Context, s *console.Session, pause time.Duration, look func(context.Context) (T, error), say func(T) error,
) error {
	if !s.Flags.Bool("watch") {
		now, err := look(ctx)
		if err != nil {
			return err
		}
		return say(now)
	}
	ctx, stop := s.Interruptible(ctx)
	defer stop()
	var before T
	for first := true; ; first = false {
		now, err := look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if first || !reflect.DeepEqual(now, before) {
			if !first && !s.Flags.Bool("json") {
				s.Say("\n%s", console.When(time.Now()))
			}
			if err := say(now); err != nil {
				return err
			}
		}
		before = now
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}
