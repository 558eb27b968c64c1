// Package redaction replaces secrets, and control sequences of terminals, in what leaves a worker. A Redactor replaces
// them in text, in every form in which a secret is commonly written; a Stream does so across the borders of messages.
// Values returns property values as JSON with placeholders for secrets, ValuesAfter shows which secrets differ.
package redaction

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Placeholder stands in for every secret in what people see.
const Placeholder = "[secret]"

const (
	// shortest is the length in bytes from which a secret is redacted: shorter ones cannot be told from ordinary text.
	shortest = 4
	// shortestEncoded is the same for what base64 and hexadecimal digits make of a secret.
	shortestEncoded = 8
	// shortestPart is the length from which the beginning of a secret is redacted at the end of a text.
	shortestPart = 6
	// maxTail bounds the text that a Stream keeps, in bytes.
	maxTail = 64 << 10
)

// Leaves are the texts in a secret: the secret itself, and if it is a JSON object or list, every string and number in
// it.
func Leaves(secret string) []string {
	texts := []string{secret}
	var value any
	decoder := json.NewDecoder(strings.NewReader(secret))
	decoder.UseNumber()
	if trimmed := strings.TrimSpace(secret); trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' ||
		decoder.Decode(&value) != nil {
		return texts
	}
	return leaves(value, texts)
}

func leaves(value any, into []string) []string {
	switch x := value.(type) {
	case string:
		into = append(into, Leaves(x)...)
	case json.Number:
		into = append(into, x.String())
	case []any:
		for _, e := range x {
			into = leaves(e, into)
		}
	case map[string]any:
		for _, e := range x {
			into = leaves(e, into)
		}
	}
	return into
}

// A Redactor redacts secrets as they are, line by line, and as they are commonly written: quoted, escaped for JSON and
// URLs, in hexadecimal digits and in base64. It is safe for concurrent use.
type Redactor struct {
	secrets  []string
	longest  int // of the secrets, at most maxTail
	replacer *strings.Replacer
}

// New makes a Redactor of secrets. Those under four bytes are left in the open.
func New(secrets []string) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		if s = strings.Trim(s, "\r\n"); len(s) >= shortest {
			r.secrets = append(r.secrets, s)
		}
		if strings.Contains(s, Placeholder) { // Replace does not look across a placeholder
			for part := range strings.SplitSeq(s, Placeholder) {
				if len(part) >= shortest {
					r.secrets = append(r.secrets, part)
				}
			}
		}
		if strings.Contains(s, "\n") {
			for line := range strings.Lines(s) {
				if line = strings.TrimSpace(line); len(line) >= shortestEncoded {
					r.secrets = append(r.secrets, line)
				}
			}
		}
	}
	slices.Sort(r.secrets)
	r.secrets = slices.Compact(r.secrets)
	for _, s := range r.secrets {
		r.longest = min(max(r.longest, len(s)), maxTail)
	}
	var forms []string
	for _, s := range r.secrets {
		forms = append(forms, formsOf(s)...)
	}
	slices.Sort(forms)
	forms = slices.Compact(forms)
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) }) // one may begin like another
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, Placeholder)
	}
	r.replacer = strings.NewReplacer(pairs...)
	return r
}

// Replace redacts the secrets in a text. Placeholders in it stay as they are, so that a text may be redacted again,
// even if a secret is a part of the placeholder.
func (r *Redactor) Replace(text string) string {
	parts := strings.Split(text, Placeholder)
	for i, part := range parts {
		parts[i] = r.replacer.Replace(part)
	}
	return strings.Join(parts, Placeholder)
}

// formsOf are the ways in which a secret may be written.
func formsOf(s string) []string {
	quoted := strconv.Quote(s)
	forms := []string{s, quoted[1 : len(quoted)-1], url.QueryEscape(s), url.PathEscape(s)}
	if text, err := json.Marshal(s); err == nil {
		inner := string(text[1 : len(text)-1])
		forms = append(forms, inner, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(inner))
		if again, err := json.Marshal(inner); err == nil { // JSON in JSON
			forms = append(forms, string(again[1:len(again)-1]))
		}
	}
	digits := hex.EncodeToString([]byte(s))
	forms = append(forms, digits, strings.ToUpper(digits))
	for offset := range 3 {
		forms = append(forms, base64Forms(s, offset)...)
	}
	return forms
}

// base64Forms are what base64 makes of a secret that begins at an offset in its groups of three bytes, as far as
// nothing beside the secret decides it.
func base64Forms(s string, offset int) []string {
	padded := append(make([]byte, offset), s...)
	from, to := (offset*8+5)/6, len(padded)*8/6
	if to-from < shortestEncoded {
		return nil
	}
	return []string{
		base64.RawStdEncoding.EncodeToString(padded)[from:to], base64.RawURLEncoding.EncodeToString(padded)[from:to],
	}
}

// A Stream redacts secrets in texts that follow each other, also those that begin in one and end in the next.
// It is not safe for concurrent use.
type Stream struct {
	redactor *Redactor
	tail     string // the end of the last text
}

// Stream begins a stream of texts.
func (r *Redactor) Stream() *Stream { return &Stream{redactor: r} }

// Use has the stream redact the secrets of another Redactor from now on.
func (s *Stream) Use(r *Redactor) { s.redactor = r }

// Next redacts the next text. What the beginning of a secret may be, at its end, is redacted too.
func (s *Stream) Next(text string) string {
	plain := strings.TrimRight(text, "\r\n")
	end := text[len(plain):]
	head, tail := 0, 0
	for _, secret := range s.redactor.secrets {
		head = max(head, continued(s.tail, plain, secret))
		tail = max(tail, overlap(plain, secret))
	}
	s.tail = plain
	if longest := s.redactor.longest; len(s.tail) > longest {
		s.tail = strings.Clone(s.tail[len(s.tail)-longest:])
	}
	if tail < shortestPart || head+tail > len(plain) {
		tail = 0
	}
	redacted := s.redactor.Replace(plain[head : len(plain)-tail])
	if head > 0 {
		redacted = Placeholder + redacted
	}
	if tail > 0 {
		redacted += Placeholder
	}
	return redacted + end
}

// overlap is the length of the longest beginning of a secret, not all of it, that a text ends with.
func overlap(text, secret string) int {
	for n := min(len(text), len(secret)-1); n > 0; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return n
		}
	}
	return 0
}

// continued is how much of a text is the rest of a secret that the text before it ended with the beginning of.
func continued(before, text, secret string) int {
	for n := min(len(before), len(secret)-1); n > 0; n-- {
		if strings.HasSuffix(before, secret[:n]) && strings.HasPrefix(text, secret[n:]) {
			return len(secret) - n
		}
	}
	return 0
}
