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
	"slices"
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

// schemeOf returns the one that counts when a message has the headers of several.
func schemeOf(h http.Header) scheme {
	switch {
	case h.Get("X-Hub-Signature-256") != "":
		return signedBody
	case h.Get("Webhook-Signature") != "":
		return signedAll
	}
	return withToken
}

// Possible reports whether a message with this header can be from someone with the secret: it is what From checks
// without the body.
func Possible(h http.Header, secret string, now time.Time) bool {
	if secret == "" {
		return false
	}
	switch schemeOf(h) {
	case signedBody:
		return len(signatures(h)) > 0
	case signedAll:
		seconds, err := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
		return err == nil && now.Sub(time.Unix(seconds, 0)).Abs() <= signedWithin && len(signatures(h)) > 0
	}
	token := h.Get("X-Gitlab-Token")
	return token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(secret)) == 1
}

// signatures returns the signatures of a message that have the right form.
func signatures(h http.Header) (all [][]byte) {
	if schemeOf(h) == signedBody {
		text, given := strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256=")
		if got, err := hex.DecodeString(text); given && err == nil && len(got) == sha256.Size {
			all = append(all, got)
		}
		return all
	}
	for one := range strings.SplitSeq(h.Get("Webhook-Signature"), " ") { // as in "Standard Webhooks"
		version, text, _ := strings.Cut(one, ",")
		got, err := base64.StdEncoding.DecodeString(text)
		if version == "v1" && err == nil && len(got) == sha256.Size {
			all = append(all, got)
		}
	}
	return all
}

// From reports whether a message was sent by someone with the secret.
func (m Message) From(secret string, now time.Time) bool {
	if !Possible(m.Header, secret, now) {
		return false
	}
	var want []byte
	switch schemeOf(m.Header) {
	case signedBody:
		want = sum([]byte(secret), m.Body)
	case signedAll:
		key := []byte(secret)
		if text, encoded := strings.CutPrefix(secret, signingKey); encoded {
			var err error
			if key, err = base64.StdEncoding.DecodeString(text); err != nil {
				return false
			}
		}
		want = sum(key, []byte(m.Header.Get("Webhook-Id")+"."+m.Header.Get("Webhook-Timestamp")+"."), m.Body)
	case withToken:
		return true
	}
	return slices.ContainsFunc(signatures(m.Header), func(got []byte) bool { return hmac.Equal(got, want) })
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
	switch schemeOf(m.Header) {
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
	switch schemeOf(m.Header) {
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
