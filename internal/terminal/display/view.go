package display

import (
	"io"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
)

// View shows one update. Its methods are called from one goroutine at a time.
type View interface {
	// Item shows the next item of the event log; End is the last item.
	Item(deployments.WatchEvent)
	// Note shows a message about the connection to the service, not about the update.
	Note(string)
	// Close restores the screen, whether the update has ended or not. It may be called twice.
	Close()
}

// Options describe how an update is shown.
type Options struct {
	Out   io.Writer
	Color bool
	// JSON prints one engine event per line, and at the end a summary object.
	JSON bool
	// Quiet shows diagnostics and the summary only.
	Quiet bool
	// Screen is the terminal of Out; nil if Out is no terminal, or a dumb one.
	Screen *Screen
	// State is filled as items arrive; nil means that the view creates its own.
	State *projection.State
	// Preview and Kind are what is shown: "preview of up".
	Preview bool
	Kind    string
	// Diff shows every change, up to 64 KiB a value, and created and deleted resources with all their properties.
	Diff bool
	// Previewed means that a preview has shown every change already: lines then show steps without their changes.
	Previewed bool
	// Expected are the rows of the preview: the update's events are about their resources. Empty if they are unknown.
	Expected []*projection.Row
	// Heading is a line that is printed first if the update is shown in lines; empty means none.
	Heading string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// New returns the view that the options ask for.
func New(o Options) View {
	if o.State == nil {
		o.State = projection.NewState()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.State.StartedBy(o.Now())
	switch {
	case o.JSON:
		return newJSON(o)
	case o.Screen != nil && !o.Quiet:
		return newTree(o)
	default:
		return newLines(o)
	}
}
