package deployments

import (
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Retry says how a step is made again that its provider has turned away. What is zero is as it is without a policy.
type Retry struct {
	// Attempts is how many times in all the provider is asked before the step fails; zero means for ever.
	Attempts int `json:"attempts,omitempty"`
	// Initial is the pause after the first attempt. Every later one is Backoff times as long, but not longer than
	// Longest. A provider that says itself when to come again is believed.
	Initial time.Duration `json:"initial,omitempty"`
	Backoff float64       `json:"backoff,omitempty"`
	Longest time.Duration `json:"longest,omitempty"`
}

// Retries are a stack's policies, by the names of packages ("aws") and types ("aws:s3/bucket:Bucket").
type Retries map[string]Retry

// Of gives the policy of a type: its own, or else that of its package.
func (r Retries) Of(t tokens.Type) Retry {
	if own, ok := r[string(t)]; ok {
		return own
	}
	pkg, _, _ := strings.Cut(string(t), ":") // t.Package() panics for a type without a module
	return r[pkg]
}
