package app

import (
	"errors"
	"io"
	"os"

	"golang.org/x/term"
)

// readHidden reads a line from the keyboard without showing it. Ctrl-D on an empty line and Ctrl-C end it with io.EOF;
// term.ReadPassword would go on reading, and take the next line that is typed, for a shell, as the value.
func readHidden() (text string, err error) {
	keyboard := int(os.Stdin.Fd())
	before, err := term.MakeRaw(keyboard)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, term.Restore(keyboard, before)) }()
	return hiddenLine(os.Stdin)
}

// hiddenLine reads the keys of a line, and none after it.
func hiddenLine(keys io.Reader) (string, error) {
	return term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{single{keys}, io.Discard}, "").ReadPassword("")
}

// single reads one key at a time. Enter that was typed before the keyboard was asked for each key has become a newline.
type single struct{ keys io.Reader }

func (s single) Read(p []byte) (int, error) {
	n, err := s.keys.Read(p[:min(len(p), 1)])
	if n == 1 && p[0] == '\n' {
		p[0] = '\r'
	}
	return n, err
}
