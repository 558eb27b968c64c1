package session

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Greet writes to the log of an update what its user may not expect, and which profile it uses. The log begins with the
// prelude, see opening.
func (s *Session) Greet(missing string) {
	if p := s.request.Profile.Used(); p != nil {
		s.log.Put(note(fmt.Sprintf("The update uses version %d of the profile %s.", p.Version, p.Name)))
	}
	if missing != "" {
		s.log.Put(warning(missing))
	}
	if asked := askedParallel(s.request); s.granted < asked {
		s.log.Put(warning(fmt.Sprintf("%d steps are made at a time, of %d that were asked for: other updates of %s "+
			"have their share of the worker.", s.granted, asked, s.update.Organization)))
	}
}

// warning returns an event that warns of something.
func warning(text string) apitype.EngineEvent { return diagnostic("warning", text) }

// note returns an event that says something.
func note(text string) apitype.EngineEvent { return diagnostic("info", text) }

func diagnostic(severity, text string) apitype.EngineEvent {
	return apitype.EngineEvent{Timestamp: int(time.Now().Unix()), DiagnosticEvent: &apitype.DiagnosticEvent{
		Message: text + "\n", Color: "never", Severity: severity,
	}}
}
