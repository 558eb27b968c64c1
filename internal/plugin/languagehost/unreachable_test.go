package languagehost

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAServerOfPackagesThatIsNotReachedIsSaid(t *testing.T) {
	for line, away := range map[string]bool{
		"npm error code ECONNREFUSED": true,
		"npm error network request to http://127.0.0.1:9/left-pad failed, reason: connect ECONNREFUSED 127.0.0.1:9":  true,
		" ERR_PNPM_META_FETCH_FAIL  GET https://registry.example/x: request failed, reason: getaddrinfo EAI_AGAIN x": true,
		"WARNING: Retrying after connection broken by 'NewConnectionError: [Errno 111] Connection refused'":          true,
		"go: module lookup disabled by GOPROXY=off":                                                                  false,
		"main.go:3:8: example.org/x@v1: Get \"https://proxy.example\": dial tcp: lookup proxy.example: no such host": true,
		"npm error code ERESOLVE":       false,
		"npm error could not determine": false,
	} {
		var u unreachable
		var got []string
		u.watch(func(line string) { got = append(got, line) })(line)
		if !slices.Equal(got, []string{line}) || (u.hint() != "") != away {
			t.Errorf("%s: %q, %q", line, got, u.hint())
		}
	}
}

func TestAttemptsThatFailAgainAreSaidOnce(t *testing.T) {
	var u unreachable
	var got []string
	line := u.watch(func(line string) { got = append(got, line) })
	for _, text := range []string{
		"WARNING: Retrying (total=4) after connection broken by 'Connection refused': /simple/a/",
		"WARNING: Retrying (total=3) after connection broken by 'Connection refused': /simple/a/",
		"info There appears to be trouble with your network connection. Retrying...", "added 3 packages",
		"info There appears to be trouble with your network connection. Retrying...", "added 3 packages",
	} {
		line(text)
	}
	if len(got) != 4 || u.hint() == "" {
		t.Errorf("%q is said", got)
	}
}

func TestAnyNumberOfAttemptsTakeNoMemory(t *testing.T) {
	var u unreachable
	passed := 0
	line := u.watch(func(string) { passed++ })
	for n := range 10 * mostSaid {
		line("connection refused by " + strings.Repeat("x", n))
	}
	if passed != 10*mostSaid || len(u.said) != mostSaid {
		t.Errorf("%d lines are passed on, and %d known again", passed, len(u.said))
	}
}

func TestALongInstallationIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := 0
		stop := explainsSlowness("npm", func(string) { said++ })
		time.Sleep(2 * slowAfter) // in the bubble
		stop()
		explainsSlowness("npm", func(string) { said++ })()
		time.Sleep(2 * slowAfter)
		if said != 1 {
			t.Errorf("it is said %d times", said)
		}
	})
}

func TestTheModulesThatGoDownloadsAreOneLine(t *testing.T) {
	var got []string
	line := downloads(func(line string) { got = append(got, line) })
	for _, text := range []string{"go: downloading a v1", "# program", "go: downloading b v2", "main.go:3: no"} {
		line(text)
	}
	if strings.Join(got, "; ") != "go: downloading modules; # program; main.go:3: no" {
		t.Errorf("%q", got)
	}
}
