package display

import (
	"io"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/projection"
)

// View shows one update. Its methods are called from one goroutine at a time.
type View interface {
	// Item shows the next item of the event log; after an End there are no more.
	Item(deployments.WatchEvent)
	// Note says something about the way to the service, not about the update.
	Note(string)
	// Close puts the screen in order, whether the update has ended or not. It may be called twice.
	Close()
}

// Options say how an update is shown.
type Options struct {
	Out   io.Writer
	Color bool
	// JSON prints one engine event per line, and at the end a summary object.
	JSON bool
	// Quiet shows diagnostics and the summary only.
	Quiet bool
	// Screen is the terminal that Out is; nil if it is none, or a dumb one.
	Screen *Screen
	// State is filled as items arrive; nil means that the view has its own.
	State *projection.State
	// Preview and Kind say what is shown: "preview of up".
	Preview bool
	Kind    string
	// Diff shows every change in full, and what is created and deleted with all its properties.
	Diff bool
	// Previewed says that a preview has shown every change already: lines then name the steps alone.
	Previewed bool
	// Total is of how many resources the update is expected to tell; zero when nobody knows.
	Total int
	// Heading is a line that stands before the update where it is shown in lines; empty means none.
	Heading string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// New makes the view that the options ask for.
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
