package command

import (
	"fmt"
	"strings"
)

// mostKept is how many bytes of each output of a command are kept.
const mostKept = 1 << 20

// output keeps the beginning and the end of what a command writes, in bounded memory.
type output struct {
	head, tail []byte // the tail is a ring once it is full
	written    int64
	next       int // where the tail goes on
}

// Write takes everything.
func (o *output) Write(p []byte) (int, error) {
	n := len(p)
	o.written += int64(n)
	if room := mostKept/2 - len(o.head); room > 0 {
		taken := min(room, len(p))
		o.head, p = append(o.head, p[:taken]...), p[taken:]
	}
	if extra := len(p) - mostKept/2; extra > 0 {
		p = p[extra:]
	}
	if room := mostKept/2 - len(o.tail); room > 0 {
		taken := min(room, len(p))
		o.tail, p = append(o.tail, p[:taken]...), p[taken:]
	}
	for len(p) > 0 {
		copied := copy(o.tail[o.next:], p)
		o.next, p = (o.next+copied)%len(o.tail), p[copied:]
	}
	return n, nil
}

// text is what is kept, as valid UTF-8 and without a newline at its end. What is missing is said in its place.
func (o *output) text() string {
	end := append(append([]byte(nil), o.tail[o.next:]...), o.tail[:o.next]...)
	text := string(o.head)
	if missing := o.written - int64(len(o.head)+len(o.tail)); missing > 0 {
		text += fmt.Sprintf("\n[%d bytes are left out here: of an output, %d KiB are kept]\n", missing, mostKept>>10)
	}
	text = strings.ToValidUTF8(text+string(end), "�")
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}
