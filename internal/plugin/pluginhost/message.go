package pluginhost

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Message is a line of output or a log call of the program or of a plugin.
type Message struct {
	Severity  diag.Severity // program output is Info (stdout) or Infoerr (stderr), plugin output is Debug
	URN       urn.URN       // the resource it is about, or empty
	Text      string        // a line of output has no line end here
	Stream    int32         // messages with the same Stream, not 0, are pieces of one text
	Ephemeral bool          // a status that is shown for a while and not stored
	Source    string        // the plugin that wrote it, or empty for a log call
}

// sink receives the Pulumi SDK's own messages about a call.
type sink func(Message)

func (s sink) Logf(sev diag.Severity, d *diag.Diag, args ...any) {
	text := d.Message
	if !d.Raw {
		text = fmt.Sprintf(text, args...)
	}
	s(Message{Severity: sev, URN: d.URN, Text: text, Stream: d.StreamID})
}

func (s sink) Debugf(d *diag.Diag, args ...any)   { s.Logf(diag.Debug, d, args...) }
func (s sink) Infof(d *diag.Diag, args ...any)    { s.Logf(diag.Info, d, args...) }
func (s sink) Infoerrf(d *diag.Diag, args ...any) { s.Logf(diag.Infoerr, d, args...) }
func (s sink) Errorf(d *diag.Diag, args ...any)   { s.Logf(diag.Error, d, args...) }
func (s sink) Warningf(d *diag.Diag, args ...any) { s.Logf(diag.Warning, d, args...) }
