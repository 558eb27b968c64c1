package deployments

import (
	"context"
	"time"
)

// ModeKind says what a service in a mode does not take.
type ModeKind string

// The modes. The empty kind is that of a service that takes everything.
const (
	// ModeMaintenance: nothing new begins, and what has begun ends. What is stored can be read and changed.
	ModeMaintenance ModeKind = "maintenance"
	// ModeReadOnly: the same, and nothing is taken that a client writes, except what running updates need.
	ModeReadOnly ModeKind = "read-only"
)

// Work is what a call, or something that runs without its caller, is to a mode.
type Work int

// The kinds of work.
const (
	WorkReads  Work = iota // or what running updates need: it is always taken
	WorkWrites             // it changes something that is stored
	WorkBegins             // it begins an update, a preview, a deployment or a run of a schedule
)

// Mode is what an operator has put the service into, for all its processes. The zero Mode is none.
type Mode struct {
	Kind   ModeKind `json:"kind,omitempty"`
	Reason string   `json:"reason,omitempty"` // a sentence or a few words, for everybody who is refused
	By     string   `json:"by,omitempty"`     // the operator's member or token
	// Since is when it was set, and Until when it ends by itself.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

const (
	// LongestMode is how long a mode lasts at most, so that no service stays in one that was forgotten.
	LongestMode = 30 * 24 * time.Hour
	// maxModeReason is how many bytes a reason has at most: it is in many messages.
	maxModeReason = 300
	// ModeKnownWithin is how long after it was set or ended a mode counts for every process of the service.
	ModeKnownWithin = 5 * time.Second
)

// On reports whether the service is in the mode at a time.
func (m Mode) On(now time.Time) bool { return m.Kind != "" && now.Before(m.Until) }

// Validate rejects, as CodeInvalid, what no operator can set at a time.
func (m Mode) Validate(now time.Time) error {
	switch {
	case m.Kind == "":
		return nil
	case m.Kind != ModeMaintenance && m.Kind != ModeReadOnly:
		return Errorf(CodeInvalid, "there is no mode %q: a service can be in %s or %s", m.Kind, ModeMaintenance,
			ModeReadOnly)
	case m.Reason == "":
		return Errorf(CodeInvalid, "say why, for those who are refused meanwhile: --reason TEXT")
	case len(m.Reason) > maxModeReason:
		return Errorf(CodeInvalid, "the reason has %d bytes, and at most %d can be shown with every refusal: shorten it",
			len(m.Reason), maxModeReason)
	case !m.Until.After(now):
		return Errorf(CodeInvalid, "it would have ended at %s already: say a later time", shownTime(m.Until))
	case m.Until.Sub(now) > LongestMode:
		return Errorf(CodeInvalid, "it would end at %s, and lasts %d days at most: set it again if it takes longer",
			shownTime(m.Until), int(LongestMode.Hours()/24))
	}
	return CheckUTF8("the reason", m.Reason)
}

// String says which mode it is, until when, and why.
func (m Mode) String() string {
	text := "in maintenance until "
	if m.Kind == ModeReadOnly {
		text = "read-only until "
	}
	return text + shownTime(m.Until) + " (" + m.Reason + ")"
}

// Holds says why nothing new begins in the mode; empty if it is none.
func (m Mode) Holds() string {
	if m.Kind == "" {
		return ""
	}
	return "the service is " + m.String() + ", and nothing new begins until then"
}

// Refuse returns the error about work that is not taken in the mode at a time, as CodeMaintenance; nil if it is taken.
func (m Mode) Refuse(w Work, now time.Time) error {
	if !m.On(now) || w == WorkReads || w == WorkWrites && m.Kind != ModeReadOnly {
		return nil
	}
	if w == WorkBegins {
		return Errorf(CodeMaintenance, "%s: try again later", m.Holds())
	}
	return Errorf(CodeMaintenance, "the service is %s, and nothing is changed until then: try again later", m)
}

func shownTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// Modes puts the service into a mode, and ends it.
type Modes interface {
	// Mode returns the mode that the service is in, as it was ModeKnownWithin ago at the earliest; the zero Mode if it
	// is in none. Needs RoleViewer. Fails as every method does.
	Mode(ctx context.Context) (Mode, error)
	// SetMode puts the service into a mode; the zero Mode ends that which it is in. Needs RoleAdmin. CodeForbidden: also
	// when the caller is not an admin of all organizations.
	SetMode(ctx context.Context, m Mode) error
}
