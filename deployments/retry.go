package deployments

import (
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Retry is a policy for steps that a provider has rejected for now. Zero fields keep the default.
type Retry struct {
	// Attempts is the number of calls before the step fails; 0 means no limit.
	Attempts int `json:"attempts,omitempty"`
	// Initial is the pause after the first attempt. Each later one is Backoff times as long, up to Longest. If the
	// provider says when to retry, that time is used.
	Initial time.Duration `json:"initial,omitempty"`
	Backoff float64       `json:"backoff,omitempty"`
	Longest time.Duration `json:"longest,omitempty"`
}

// Retries are a stack's policies, by the names of packages ("aws") and types ("aws:s3/bucket:Bucket").
type Retries map[string]Retry

// Of returns the policy of a type: its own, or else that of its package.
func (r Retries) Of(t tokens.Type) Retry {
	if own, ok := r[string(t)]; ok {
		return own
	}
	pkg, _, _ := strings.Cut(string(t), ":") // t.Package() panics for a type without a module
	return r[pkg]
}
