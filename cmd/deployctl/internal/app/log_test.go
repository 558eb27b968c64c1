package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// logged returns the log of settings, and what it has got.
func logged(t *testing.T, format, level string) (*slog.Logger, *bytes.Buffer, error) {
	t.Helper()
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	loaded, err := settings.Load(settings.Sources{Variable: func(name string) string {
		return map[string]string{"DEPLOYCTL_LOG_FORMAT": format, "DEPLOYCTL_LOG_LEVEL": level}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	log, err := newLog(&text, loaded)
	return log, &text, err
}

func TestALogIsTextOrJSONOfALevelAndSoIsAPanic(t *testing.T) {
	log, text, err := logged(t, "", "")
	log.Debug("hidden")
	log.Info("shown", "stack", "shop/dev")
	if line := text.String(); err != nil || strings.Contains(line, "hidden") ||
		!strings.Contains(line, "level=INFO msg=shown stack=shop/dev") {
		t.Errorf("without settings it has %q, %v", line, err)
	}
	log, text, err = logged(t, "json", "warn")
	log.Info("hidden")
	_ = panics.Do("testing", func() error { panic("at the disco") })
	var line struct{ Level, Msg, Panic, Stack string }
	if failed := json.Unmarshal(text.Bytes(), &line); err != nil || failed != nil || line.Level != "ERROR" ||
		line.Panic != "at the disco" || !strings.Contains(line.Stack, "log_test.go") {
		t.Errorf("a panic is %q, %v", text.String(), err)
	}
}

func TestALogOfUnknownFormatOrLevelIsRefused(t *testing.T) {
	log, _, err := logged(t, "xml", "loud")
	if deployments.CodeOf(err.(interface{ Unwrap() []error }).Unwrap()[0]) != deployments.CodeInvalid || log == nil ||
		!strings.Contains(err.Error(), `log.format must be text or json, not "xml" (set by DEPLOYCTL_LOG_FORMAT)`) ||
		!strings.Contains(err.Error(), `log.level must be debug, info, warn or error, not "loud"`) {
		t.Errorf("%v", err)
	}
}
