package access

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deployctl/deployctl/statestore/bucket"
)

// Store is the typed store of who may do what, and of the audit log. See the package's description.
type Store struct {
	sealed   *bucket.Sealed
	callers  callers
	lookups  lookups                    // tokens that are being read
	tokensOf *lru.Cache[string, string] // the organizations of tokens, by name; see roomForToken
	issuer   issuer
}

// New returns the store over a bucket. A process has one for a bucket, because it remembers callers.
func New(sealed *bucket.Sealed) (*Store, error) {
	tokensOf, err := lru.New[string, string](maxTokensKnown)
	if err != nil {
		return nil, err
	}
	return &Store{sealed: sealed, tokensOf: tokensOf}, nil
}
