package app

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAHiddenLineEndsWithEnterAndNoneIsReadAfterTheEndOfTheInput(t *testing.T) {
	for keys, want := range map[string]string{
		"pass phrase\rnext\r": "pass phrase", "päss\n": "päss", "wrong\x7f\x7f\x7f\x7f\x7fright\r": "right", "\r": "",
	} {
		read := strings.NewReader(keys)
		if got, err := hiddenLine(read); got != want || err != nil {
			t.Errorf("%q: %q, %v", keys, got, err)
		}
		if rest, _ := io.ReadAll(read); !strings.HasSuffix(keys, string(rest)) || strings.HasPrefix(keys, "pass") &&
			string(rest) != "next\r" {
			t.Errorf("%q: %q is left", keys, rest)
		}
	}
	for _, keys := range []string{"\x04clear\r", "\x03clear\r", ""} { // Ctrl-D, Ctrl-C, and a terminal that is gone
		if got, err := hiddenLine(strings.NewReader(keys)); got != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%q: %q, %v", keys, got, err)
		}
	}
}
