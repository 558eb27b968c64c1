package languagehost

import (
	"regexp"
	"sync/atomic"
)

// unreachable watches what a package manager writes for words that mean that a server does not answer.
type unreachable struct{ seen atomic.Bool }

// away matches what npm, pnpm, yarn, bun, pip, uv, Poetry and Go say of a server that they do not reach.
var away = regexp.MustCompile(`ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ERR_SOCKET_TIMEOUT|` +
	`ConnectionRefused|` +
	`(?i:connection refused|network is unreachable|network timeout|no such host|i/o timeout|name or service not known|` +
	`name resolution|failed to connect|could not connect|max retries exceeded)`)

// watch returns a receiver of lines that passes them on.
func (u *unreachable) watch(line func(string)) func(string) {
	return func(text string) {
		if away.MatchString(text) {
			u.seen.Store(true)
		}
		line(text)
	}
}

// hint follows the error of a package manager that did not reach a server; "" if it did.
func (u *unreachable) hint() string {
	if !u.seen.Load() {
		return ""
	}
	return ": a server of packages cannot be reached from where programs run, as its output above says"
}
