package display

import (
	"os"

	"golang.org/x/term"
)

// Screen is a terminal that understands cursor movements.
type Screen struct {
	// Size returns columns and rows, which change when the user resizes the window.
	Size func() (columns, rows int)
}

// FindScreen returns the terminal of a file; nil if the file is no terminal, or TERM=dumb.
func FindScreen(file *os.File, variable func(string) string) *Screen {
	fd := int(file.Fd())
	if !term.IsTerminal(fd) || variable("TERM") == "dumb" || variable("TERM") == "" && os.PathSeparator == '/' {
		return nil
	}
	return &Screen{Size: func() (int, int) {
		columns, rows, err := term.GetSize(fd)
		if err != nil || columns <= 0 || rows <= 0 {
			return 80, 24
		}
		return columns, rows
	}}
}
