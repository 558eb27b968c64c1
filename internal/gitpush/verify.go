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

// From reports whether a message was sent by someone with the secret: GitHub signs the body, GitLab signs it with an id
// and the time, or sends the secret itself.
func (m Message) From(secret string, now time.Time) bool {
	if secret == "" {
		return false
	}
	if signature, given := strings.CutPrefix(m.Header.Get("X-Hub-Signature-256"), "sha256="); given {
		got, err := hex.DecodeString(signature)
		return err == nil && hmac.Equal(got, sum([]byte(secret), m.Body))
	}
	if signatures := m.Header.Get("Webhook-Signature"); signatures != "" {
		return m.signed(secret, signatures, now)
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
	switch {
	case m.Header.Get("X-Hub-Signature-256") != "":
		return m.said()
	case m.Header.Get("Webhook-Signature") != "":
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

// Digest names what was signed, so that it is acted on once. The id of a delivery is not signed by every server.
func (m Message) Digest() string {
	digest := sha256.Sum256(m.Body)
	return hex.EncodeToString(digest[:])
}
