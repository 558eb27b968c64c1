package app

import (
	"errors"
	"io"
	"log/slog"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// newLog returns the log of the service's process as the settings want it, and makes it the default one, which panics
// use. With an error it is the log of no settings, so that it can be used until the error is reported.
func newLog(to io.Writer, s settings.Settings) (*slog.Logger, error) {
	var faults []error
	options := &slog.HandlerOptions{}
	switch level := s.Get(settings.LogLevel); level {
	case "debug", "info", "warn", "error":
		var l slog.Level
		_ = l.UnmarshalText([]byte(level)) // it is one of these
		options.Level = l
	default:
		faults = append(faults, deployments.Errorf(deployments.CodeInvalid,
			"log.level must be debug, info, warn or error, not %q (set by %s)", level, s.Source(settings.LogLevel)))
	}
	var handler slog.Handler = slog.NewTextHandler(to, options)
	switch format := s.Get(settings.LogFormat); format {
	case "text":
	case "json":
		handler = slog.NewJSONHandler(to, options)
	default:
		faults = append(faults, deployments.Errorf(deployments.CodeInvalid,
			"log.format must be text or json, not %q (set by %s)", format, s.Source(settings.LogFormat)))
	}
	log := slog.New(handler)
	slog.SetDefault(log)
	return log, errors.Join(faults...)
}
