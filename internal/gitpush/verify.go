// Package gitpush reads what git servers send to webhooks: pushes, and pull requests. It checks who has sent it and
// says what it is about; what then happens is up to the service.
package gitpush

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// signedWithin is how old a message with a signed time may be.
const signedWithin = 5 * time.Minute

// signingKey begins a secret with which GitLab signs (the key in base64 follows).
const signingKey = "whsec_"

// Message is what a git server has sent.
type Message struct {
	Header http.Header
	Body   []byte
}

// Signed reports whether a message has what From checks.
func Signed(h http.Header) bool {
	return h.Get("X-Hub-Signature-256") != "" || h.Get("Webhook-Signature") != "" || h.Get("X-Gitlab-Token") != ""
}

// scheme is how a message shows that its sender has the secret, and so which parts of it can be trusted.
type scheme int

const (
	signedBody scheme = iota // GitHub signs the body
	signedAll                // GitLab signs the body with an id and the time, as in "Standard Webhooks"
	withToken                // GitLab sends the secret itself, and signs nothing
)

// scheme returns the one that counts when a message has the headers of several.
func (m Message) scheme() scheme {
	switch {
	case m.Header.Get("X-Hub-Signature-256") != "":
		return signedBody
	case m.Header.Get("Webhook-Signature") != "":
		return signedAll
	}
	return withToken
}

// From reports whether a message was sent by someone with the secret.
func (m Message) From(secret string, now time.Time) bool {
	if secret == "" {
		return false
	}
	switch m.scheme() {
	case signedBody:
		signature, given := strings.CutPrefix(m.Header.Get("X-Hub-Signature-256"), "sha256=")
		got, err := hex.DecodeString(signature)
		return given && err == nil && hmac.Equal(got, sum([]byte(secret), m.Body))
	case signedAll:
		return m.signed(secret, m.Header.Get("Webhook-Signature"), now)
	}
	token := m.Header.Get("X-Gitlab-Token")
	return token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(secret)) == 1
}

// signed checks the signatures of the specification "Standard Webhooks", one of which must be right.
func (m Message) signed(secret, signatures string, now time.Time) bool {
	id, at := m.Header.Get("Webhook-Id"), m.Header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || age.Abs() > signedWithin {
		return false
	}
	key := []byte(secret)
	if text, encoded := strings.CutPrefix(secret, signingKey); encoded {
		if key, err = base64.StdEncoding.DecodeString(text); err != nil {
			return false
		}
	}
	want := sum(key, []byte(id+"."+at+"."), m.Body)
	for one := range strings.SplitSeq(signatures, " ") {
		version, text, _ := strings.Cut(one, ",")
		got, err := base64.StdEncoding.DecodeString(text)
		if version == "v1" && err == nil && hmac.Equal(got, want) {
			return true
		}
	}
	return false
}

func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		_, _ = mac.Write(part) // never fails
	}
	return mac.Sum(nil)
}

// Happened returns when that happened of which a message tells, as its sender has signed it; zero when that is not
// said. GitLab's token signs nothing, and whoever can repeat the message has it, and can as well write another: then it
// is now.
func (m Message) Happened(now time.Time) time.Time {
	switch m.scheme() {
	case signedBody:
		return m.said()
	case signedAll:
		seconds, _ := strconv.ParseInt(m.Header.Get("Webhook-Timestamp"), 10, 64) // From has checked it
		return time.Unix(seconds, 0)
	}
	return now
}

// said returns the time in the body of a message of GitHub. Its header is not signed, but what the header does not fit
// is no event.
func (m Message) said() time.Time {
	var g struct {
		Repository struct {
			PushedAt json.RawMessage `json:"pushed_at"` // seconds, in messages about pushes
		}
		PullRequest struct {
			UpdatedAt time.Time `json:"updated_at"`
		} `json:"pull_request"`
	}
	if json.Unmarshal(m.Body, &g) != nil {
		return time.Time{}
	}
	if m.Header.Get("X-Github-Event") == "pull_request" {
		return g.PullRequest.UpdatedAt
	}
	if seconds, err := strconv.ParseInt(string(g.Repository.PushedAt), 10, 64); err == nil {
		return time.Unix(seconds, 0)
	}
	return time.Time{}
}

// Digest names a delivery, so that it is acted on once. GitLab's messages about two pushes may be equal but for the id,
// which it keeps when it sends one again; GitHub does not sign its id, and the time in the body tells pushes apart.
func (m Message) Digest() string {
	digest, id := sha256.New(), ""
	switch m.scheme() {
	case signedAll:
		id = m.Header.Get("Webhook-Id")
	case withToken:
		id = m.Header.Get("Idempotency-Key")
	}
	if id != "" {
		_, _ = io.WriteString(digest, id+"\n") // never fails
	}
	_, _ = digest.Write(m.Body)
	return hex.EncodeToString(digest.Sum(nil))
}
