package deployments

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"time"
)

// maxAuditText limits each text of an entry: callers write some of them.
const maxAuditText = 1 << 10

// AuditEntry is one call of the service, as recorded in the audit log.
type AuditEntry struct {
	Time    time.Time `json:"time"`
	Request string    `json:"request"` // the call's id, which is also in the service's log
	// Organization is the organization that the call concerned; empty if none.
	Organization string `json:"organization,omitempty"`
	Token        string `json:"token,omitempty"` // empty: no known token
	Member       string `json:"member,omitempty"`
	// Identity is the subject of the identity token for which the token was given.
	Identity string `json:"identity,omitempty"`
	Peer     string `json:"peer"`   // address that the call came from
	Method   string `json:"method"` // such as Stacks/Export
	// Stack is PROJECT/STACK; Subject is anything else that the call concerned, such as a version or a token's name.
	Stack   string `json:"stack,omitempty"`
	Subject string `json:"subject,omitempty"`
	Secrets bool   `json:"secrets,omitempty"` // the call asked for plaintext secrets
	// Code and Error are those of a failed call.
	Code  Code   `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
	// Repeated counts rejected calls that were too many to be entries of their own.
	Repeated int `json:"repeated,omitempty"`
	// Refused says that the caller may not make the call, so that it may be counted instead; Party is to whose account
	// that goes, empty without a token. They are for whoever keeps the log, and not in it.
	Refused bool   `json:"-"`
	Party   string `json:"-"`
}

// LogValue makes an entry that is logged, because it could not be written, JSON as it would have been.
func (e AuditEntry) LogValue() slog.Value {
	text, _ := json.Marshal(e) // no field can fail
	return slog.StringValue(string(text))
}

// Cut shortens each text of the entry that is too long for the log.
func (e *AuditEntry) Cut() {
	fields := reflect.ValueOf(e).Elem()
	for i := range fields.NumField() {
		if field := fields.Field(i); field.Kind() == reflect.String && field.Len() > maxAuditText {
			field.SetString(strings.ToValidUTF8(field.String()[:maxAuditText], "") + "…")
		}
	}
}

// Size is about how many bytes the entry has.
func (e *AuditEntry) Size() int64 {
	return int64(256 + len(e.Request) + len(e.Organization) + len(e.Token) + len(e.Member) + len(e.Identity) +
		len(e.Peer) + len(e.Method) + len(e.Stack) + len(e.Subject) + len(e.Error))
}

// AuditQuery selects entries of the audit log.
type AuditQuery struct {
	// Organization selects the entries of one organization; AnyOrganization selects all that the caller may see, with
	// those that concern no organization, such as a wrong token.
	Organization string
	Since        time.Time
	Until        time.Time // zero: now
	User         string    // a member's or a token's name, or the subject of an identity
	Stack        string    // PROJECT/STACK, or STACK
}

// Selects reports whether the query selects an entry.
func (q AuditQuery) Selects(e AuditEntry) bool {
	project, stack, _ := strings.Cut(e.Stack, "/")
	return (q.Organization == AnyOrganization || q.Organization == e.Organization) && !e.Time.Before(q.Since) &&
		(q.Until.IsZero() || !e.Time.After(q.Until)) &&
		(q.User == "" || q.User == e.Token || q.User == e.Member || q.User == e.Identity) &&
		(q.Stack == "" || q.Stack == e.Stack || q.Stack == stack || q.Stack == e.Organization+"/"+project+"/"+stack)
}
