package deployments

import (
	"strings"
	"time"
)

// AuditEntry is one call of the service, as its audit log remembers it.
type AuditEntry struct {
	Time    time.Time `json:"time"`
	Request string    `json:"request"` // the call's id, which the service's log has, too
	// Organization is that of what the call was about; empty when it was about none.
	Organization string `json:"organization,omitempty"`
	Token        string `json:"token,omitempty"` // empty: none that is known
	Member       string `json:"member,omitempty"`
	Peer         string `json:"peer"`   // address that the call came from
	Method       string `json:"method"` // such as Stacks/Export
	// Stack is PROJECT/STACK; Subject is what else the call was about, such as an update's version or a token's name.
	Stack   string `json:"stack,omitempty"`
	Subject string `json:"subject,omitempty"`
	Secrets bool   `json:"secrets,omitempty"` // secrets were asked for in plain text
	// Code is empty when the call succeeded, Error says why it did not.
	Code  Code   `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
	// Repeated counts refused calls that are not entries of their own, because there were too many.
	Repeated int `json:"repeated,omitempty"`
}

// AuditQuery selects entries of the audit log.
type AuditQuery struct {
	// Organization selects what was about one organization, AnyOrganization everything that the caller may see. What
	// was about none, such as a wrong token, belongs to AnyOrganization.
	Organization string
	Since        time.Time
	User         string // a member's or a token's name
	Stack        string // PROJECT/STACK, or STACK
}

// Selects reports whether an entry is among those that the query asks for.
func (q AuditQuery) Selects(e AuditEntry) bool {
	project, stack, _ := strings.Cut(e.Stack, "/")
	return (q.Organization == AnyOrganization || q.Organization == e.Organization) && !e.Time.Before(q.Since) &&
		(q.User == "" || q.User == e.Token || q.User == e.Member) &&
		(q.Stack == "" || q.Stack == e.Stack || q.Stack == stack || q.Stack == e.Organization+"/"+project+"/"+stack)
}
