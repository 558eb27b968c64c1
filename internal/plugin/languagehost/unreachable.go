package languagehost

import (
	"hash/maphash"
	"regexp"
	"sync"
	"time"
)

// unreachable watches what a package manager writes for words that mean that a server does not answer.
type unreachable struct {
	mu   sync.Mutex
	said map[uint64]bool // hashes of lines without their numbers
}

// mostSaid is how many lines are known again: a script of a package may write any number of them.
const mostSaid = 100

var lineSeed = maphash.MakeSeed()

// away matches what npm, pnpm, yarn, bun, pip, uv, Poetry and Go say of a server that they do not reach.
var away = regexp.MustCompile(`ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ERR_SOCKET_TIMEOUT|` +
	`ConnectionRefused|` +
	`(?i:connection refused|network is unreachable|network timeout|no such host|i/o timeout|name or service not known|` +
	`name resolution|failed to connect|could not connect|max retries exceeded|trouble with your network connection)`)

// numbers match what differs between attempts.
var numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)

// watch returns a receiver of lines that passes them on; what says the same about another attempt, once.
func (u *unreachable) watch(line func(string)) func(string) {
	return func(text string) {
		if !away.MatchString(text) || u.first(numbers.ReplaceAllString(text, "")) {
			line(text)
		}
	}
}

// first notes what is said, and reports whether it was not said before.
func (u *unreachable) first(text string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	line := maphash.String(lineSeed, text)
	before := u.said[line]
	if u.said == nil {
		u.said = map[uint64]bool{}
	}
	if len(u.said) < mostSaid {
		u.said[line] = true
	}
	return !before
}

// slowAfter is how long an installation takes before it is said what that may be.
const slowAfter = time.Minute

// explainsSlowness says what a long installation may wait for, once, until stop is called.
func explainsSlowness(manager string, line func(string)) (stop func() bool) {
	return time.AfterFunc(slowAfter, func() {
		line(manager + " has not ended for a minute. If a server of packages does not answer, it asks again for some " +
			"minutes before it says so.")
	}).Stop
}

// hint follows the error of a package manager that did not reach a server; "" if it did.
func (u *unreachable) hint() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.said) == 0 {
		return ""
	}
	return ": a server of packages cannot be reached from where programs run, as its output above says"
}
