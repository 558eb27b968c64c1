package display

import (
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/deployctl/deployctl/internal/values/valuediff"
)

// mostOfValue and mostInFull are how many characters are shown of a value, or of what changes in it: a larger one
// would push all else off the screen.
const mostOfValue, mostInFull = 2000, 64 << 10

// bounded cuts the lines about a value that are too long, and says how large the value is and what has the whole of it.
func (f form) bounded(lines []string, old, now any, whole string) []string {
	room := mostOfValue
	if f.full {
		room = mostInFull
	}
	for i, line := range lines {
		n := utf8.RuneCountInString(line)
		if n <= room {
			room -= n
			continue
		}
		out := lines[:i:i]
		if i == 0 || room > leastRoom {
			out = append(out, clip(line, room))
		}
		return append(out, f.paint.paint(dim, "  … "+sizes(old, now)+" in all"+whole))
	}
	return lines
}

// sizes says how large a value is, and was before.
func sizes(old, now any) string {
	switch {
	case now == nil:
		return bytesOf(old)
	case old == nil || bytesOf(old) == bytesOf(now):
		return bytesOf(now)
	}
	return bytesOf(old) + " → " + bytesOf(now)
}

// bytesOf says how large a value is as JSON.
func bytesOf(value any) string {
	size, omitted := deployments.OmittedSize(value)
	if !omitted {
		size = len(valuediff.OneLine(value))
	}
	return fmt.Sprintf("%d bytes", size)
}

// wholeOutput says how to see the whole of an output.
func (f form) wholeOutput(name string, has bool) string {
	switch {
	case f.preview:
		return "; --json prints it"
	case !has:
		return ""
	}
	return "; `deployctl stack output " + safetext.Visible(name) + "` prints it"
}

// wholeOmitted is wholeOutput for an output that the event omits, too.
func (f form) wholeOmitted(name string, has bool) string {
	if f.preview {
		return ""
	}
	return f.wholeOutput(name, has)
}

// wholeProperty says how to see the whole of a property.
func (f form) wholeProperty() string {
	if f.preview {
		return "; --json prints it"
	}
	return "; `deployctl stack export` has it"
}

// omitted reports whether the event has something else in the place of a value.
func omitted(value any) bool {
	_, ok := deployments.OmittedSize(value)
	return ok
}

// sameOutput reports whether an output has not changed. Of an omitted one, that is told by its digest.
func sameOutput(old, now any) bool {
	if omitted(old) != omitted(now) {
		if omitted(now) {
			old, now = now, old
		}
		return old == deployments.Omit(now)
	}
	return reflect.DeepEqual(projection.Readable(old), projection.Readable(now))
}
