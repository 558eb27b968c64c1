package process

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// longestLine is the length in bytes from which a line is delivered in pieces.
const longestLine = 64 << 10

// Lines calls sink for each line of r until r ends, without line ends (LF or CRLF), which the last line may lack.
// Longer lines than longestLine are delivered in pieces, so that a child that never ends its line costs no memory. A
// nil sink discards the lines.
func Lines(r io.Reader, sink func(line string)) {
	if sink == nil {
		_, _ = io.Copy(io.Discard, r)
		return
	}
	buf := bufio.NewReaderSize(r, longestLine)
	for {
		piece, err := buf.ReadSlice('\n')
		if len(piece) > 0 {
			sink(strings.TrimSuffix(strings.TrimSuffix(string(piece), "\n"), "\r"))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
