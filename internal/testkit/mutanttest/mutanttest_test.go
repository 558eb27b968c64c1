package mutanttest

import (
	"errors"
	"testing"
)

func TestAMutantThatComesToNoEndIsNotCaught(t *testing.T) {
	failure := errors.New("exit status 1")
	for out, want := range map[string]string{
		"--- FAIL: TestTranscripts (0.1s)":                "failed",
		"panic: runtime error: index out of range":        "failed",
		"panic: test timed out after 3m0s\nrunning":       "came to no end",
		"steps.go:1:1: syntax error\nFAIL [build failed]": "could not be run",
	} {
		if got := judge(out, failure); got != want {
			t.Errorf("%q: the tests %s, not %s", out, got, want)
		}
	}
}
