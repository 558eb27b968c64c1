package worker

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// quiet is a handler of the SDK's log that calls a heartbeat no warning if it was under way when its activity ended.
type quiet struct{ slog.Handler }

// Handle hands a record on, as a warning no more if it is no reason for one.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "RecordActivityHeartbeat with error" && interrupted(r) {
		if r.Level = slog.LevelDebug; !q.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return q.Handler.Handle(ctx, r)
}

// interrupted reports whether a record has the error of a call whose context ended.
func interrupted(r slog.Record) (is bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Any().(error)
		is = errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled
		return !is
	})
	return is
}

// WithAttrs returns a handler like q whose records have the attributes.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup returns a handler like q whose attributes are in a group.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
