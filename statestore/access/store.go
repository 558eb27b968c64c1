package access

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deployctl/deployctl/statestore/bucket"
)

// Store is the typed store of who may do what, and of the audit log. See the package's description.
type Store struct {
	// Issuer is the service as an issuer of workload tokens.
	Issuer *Issuer

	sealed   *bucket.Sealed
	callers  callers
	lookups  lookups                    // tokens that are being read
	tokensOf *lru.Cache[string, string] // the organizations of tokens, by name; see roomForToken
	issuers  trustIssuers
}

// New returns the store over a bucket. A process has one for a bucket, because it remembers callers.
func New(sealed *bucket.Sealed) (*Store, error) {
	tokensOf, err := lru.New[string, string](maxTokensKnown)
	if err != nil {
		return nil, err
	}
	known, err := lru.New[string, issuerOfTrust](maxIssuersKnown)
	if err != nil {
		return nil, err
	}
	return &Store{Issuer: &Issuer{sealed: sealed}, sealed: sealed, tokensOf: tokensOf,
		issuers: trustIssuers{known: known}}, nil
}
