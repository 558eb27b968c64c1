package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agext/levenshtein"
	"github.com/deployctl/deployctl/deployments"
)

// When formats a time for the user.
func When(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

// Counted returns a number with its noun.
func Counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// nearest returns the candidate that is most similar to a mistyped word; "" if none is similar enough.
func nearest(word string, candidates []string) string {
	letters := strings.ToLower(strings.TrimLeft(word, "-"))
	best, least := "", min(len([]rune(letters))/3+2, len([]rune(letters))/2+1)
	for _, candidate := range candidates {
		distance := levenshtein.Distance(letters, strings.ToLower(strings.TrimLeft(candidate, "-")), nil)
		if swapped(word, candidate) {
			distance = 1
		}
		if distance < least && distance < len([]rune(candidate)) {
			best, least = candidate, distance
		}
	}
	return best
}

// swapped reports whether two words differ only by two adjacent characters that are swapped.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i+1 < len(a); i++ {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// DidYouMean returns the part of a message that suggests a candidate; "" if none is similar to the word.
func DidYouMean(word string, candidates []string) string {
	if found := nearest(word, candidates); found != "" {
		return "; did you mean " + found + "?"
	}
	return ""
}

// Duration parses a duration, which may have days, such as 7d or 1d12h.
func Duration(flag, text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		days, rest = "0", text
	}
	n, err := strconv.Atoi(days)
	var d time.Duration
	if err == nil && rest != "" {
		d, err = time.ParseDuration(rest)
	}
	d += time.Duration(n) * 24 * time.Hour
	if err != nil || d <= 0 {
		return 0, deployments.Errorf(deployments.CodeInvalid, "--%s takes a duration such as 30m, 12h or 7d, not %q",
			flag, text)
	}
	return d, nil
}

// Moment parses a time.
func Moment(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, deployments.Errorf(deployments.CodeInvalid, "--%s takes a time such as 2006-01-02T15:04:05Z or "+
			"\"2006-01-02 15:04\", not %q", flag, text)
	}
	return at, nil
}
