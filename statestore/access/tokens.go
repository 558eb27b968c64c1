package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// The limits of one organization; tests set others.
var maxTokens, maxMembers, maxOwned = deployments.MaxTokens, deployments.MaxMembers, deployments.MaxOwned

// storedToken is a token at rest. A token's text is "dctl." and its name, "." and 256 random bits; only its hash is
// stored. The JSON names of deployments.Token are both the format of the bucket and that of "token ls --json", so none
// can be renamed.
type storedToken struct {
	deployments.Token
	Hash string `json:"hash"`
	// Since is when the token's member was created: a later member may have the same name.
	Since time.Time `json:"since,omitzero"`
}

const (
	// TokenFolder has the tokens, of all organizations.
	TokenFolder = "tokens/"
	tokenPrefix = "dctl."
	// usedStep is the precision of the recorded last use.
	usedStep = time.Minute
	// usedPatience bounds how long a use is being recorded.
	usedPatience = 10 * time.Second
	// maxTokensKnown limits the tokens of which the store remembers the organization.
	maxTokensKnown = 100_000
	// maxTokenText limits the texts that are looked up.
	maxTokenText = 256
)

// CreateToken creates a token and returns its text, which is stored nowhere; CodeExists when the name is taken,
// CodeNotFound when there is no such member.
func (s *Store) CreateToken(ctx context.Context, t deployments.Token) (string, error) {
	if err := t.Validate(); err != nil {
		return "", err
	}
	if !t.Expires.IsZero() && !t.Expires.After(s.sealed.Now()) {
		return "", outlived(t.Expires)
	}
	stored := storedToken{Token: t}
	stored.Origin = nil
	if t.Member != "" {
		member, err := s.Member(ctx, t.Organization, t.Member)
		if err != nil {
			return "", err
		}
		stored.Since = member.Created
	}
	if err := s.roomForToken(ctx, t.Within()); err != nil {
		return "", err
	}
	return s.newToken(ctx, &stored)
}

// roomForToken reports, as CodeConflict, that an organization has as many tokens as it can have. The tokens of all are
// in one folder, so what was found out about a name is remembered.
func (s *Store) roomForToken(ctx context.Context, organization string) error {
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: TokenFolder})
	if err != nil {
		return bucket.Failed(err, "list the tokens")
	}
	if len(l.Keys) < maxTokens {
		return nil
	}
	size := func(of string) int64 { return int64(len(of)) }
	of, err := bucket.Gather(bucket.NewBudget(ctx), l.Keys, size, func(key string) (string, error) {
		name := strings.TrimPrefix(key, TokenFolder)
		if known, ok := s.tokensOf.Get(name); ok {
			return known, nil
		}
		t, err := s.Token(ctx, name)
		if err == nil {
			s.tokensOf.Add(name, t.Within())
		}
		return t.Within(), err
	})
	if err != nil {
		return err
	}
	count := 0
	for _, within := range of {
		if within == organization {
			count++
		}
	}
	return tooMany(count, maxTokens, organization, "tokens", "token")
}

// tooMany reports, as CodeConflict, that an organization has as many things of a kind as it can have.
func tooMany(count, most int, organization, kinds, command string) error {
	if count < most {
		return nil
	}
	return deployments.Errorf(deployments.CodeConflict, "there are %d %s with --organization '%s', and can be no more: "+
		"remove some with `deployctl %s rm`", count, kinds, organization, command)
}

func outlived(expires time.Time) error {
	return deployments.Errorf(deployments.CodeInvalid, "a token that expired at %s is of no use: name a time to come",
		expires.Format(time.RFC3339))
}

// newToken writes a new token and returns its text.
func (s *Store) newToken(ctx context.Context, t *storedToken) (string, error) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	text := tokenPrefix + t.Name + "." + hex.EncodeToString(secret[:])
	t.Created, t.Used, t.Hash = s.sealed.Now().UTC(), time.Time{}, sha256Hex([]byte(text))
	err := s.putToken(ctx, *t, bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return "", deployments.Errorf(deployments.CodeExists, "there is a token %s already: remove it first, or use "+
			"another name", t.Name)
	}
	return text, err
}

// ListTokens describes the tokens, sorted by name.
func (s *Store) ListTokens(ctx context.Context) ([]deployments.Token, error) {
	return s.TokensOf(ctx, deployments.AnyOrganization)
}

// TokensOf describes the tokens that are for an organization alone, or all with AnyOrganization, sorted by name. Those
// of others take no memory.
func (s *Store) TokensOf(ctx context.Context, organization string) ([]deployments.Token, error) {
	return s.tokensWhere(ctx, func(t deployments.Token) bool {
		return organization == deployments.AnyOrganization || t.Within() == organization
	})
}

// tokensWhere describes the tokens for which a condition holds.
func (s *Store) tokensWhere(ctx context.Context, holds func(deployments.Token) bool) ([]deployments.Token, error) {
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: TokenFolder})
	if err != nil {
		return nil, bucket.Failed(err, "list the tokens")
	}
	return s.tokensAt(ctx, l.Keys, holds)
}

// errElsewhere: what was read is of another organization than the one that is listed.
var errElsewhere = deployments.Errorf(deployments.CodeNotFound, "it is of another organization")

// tokensAt describes the tokens under some keys, those for which a condition holds.
func (s *Store) tokensAt(
	ctx context.Context, keys []string, holds func(deployments.Token) bool,
) ([]deployments.Token, error) {
	budget := bucket.NewBudget(ctx)
	return bucket.Gather(budget, keys, deployments.Token.Size, func(key string) (deployments.Token, error) {
		t, err := s.Token(ctx, strings.TrimPrefix(key, TokenFolder))
		if err == nil && !holds(t) {
			err = errElsewhere
		}
		return t, err
	})
}

// Token describes a token, which may be damaged; CodeNotFound when there is none of this name.
func (s *Store) Token(ctx context.Context, name string) (deployments.Token, error) {
	t, _, err := s.getToken(ctx, name)
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		return t.Token, deployments.Errorf(deployments.CodeNotFound, "there is no token %s", name)
	case bucket.Unreadable(err) != nil:
		return deployments.Token{Name: name, Damaged: err.Error() + ", or remove it with `deployctl token rm`; " +
			"if that refuses the name, remove the object " + TokenFolder + name}, nil
	}
	return t.Token, err
}

// RemoveToken revokes a token; CodeNotFound when there is none of this name.
func (s *Store) RemoveToken(ctx context.Context, name string) error {
	if err := deployments.ValidateName("token", name); err != nil {
		return err
	}
	t, _, err := s.getToken(ctx, name)
	if err != nil && bucket.Unreadable(err) == nil {
		if errors.Is(err, bucket.ErrAbsent) {
			return deployments.Errorf(deployments.CodeNotFound, "there is no token %s", name)
		}
		return err
	}
	defer s.callers.forget(t.Within()) // AnyOrganization, if it cannot be read
	return bucket.Failed(s.sealed.Objects.Delete(ctx, TokenFolder+name), "remove the token "+name)
}

// Authenticate returns the caller whose token has this text; CodeUnauthorized when there is none, or it has expired.
// The answer may be a few seconds old when another process has changed the token.
func (s *Store) Authenticate(ctx context.Context, text string) (deployments.Caller, error) {
	wrong := deployments.Errorf(deployments.CodeUnauthorized, "the access token is not valid: it was removed, or "+
		"belongs to another service")
	name, _, ok := cutLast(strings.TrimPrefix(text, tokenPrefix), ".")
	if !ok || len(text) > maxTokenText || deployments.ValidateName("token", name) != nil {
		return deployments.Caller{}, wrong
	}
	hash := sha256.Sum256([]byte(text))
	found, ok := s.callers.find(hash, s.sealed.Now())
	if !ok {
		var err error
		if found, err = s.authenticateOnce(ctx, name, hash); err != nil {
			if deployments.CodeOf(err) == deployments.CodeNotFound {
				return deployments.Caller{}, wrong
			}
			return deployments.Caller{}, err
		}
	}
	if !found.expires.IsZero() && !found.expires.After(s.sealed.Now()) {
		return deployments.Caller{}, deployments.Errorf(deployments.CodeUnauthorized,
			"the access token %s expired at %s: ask for a new one", name, found.expires.UTC().Format(time.RFC3339))
	}
	return found.Caller, nil
}

// authenticateOnce is authenticate for all who ask with a token at once: a client's first calls come together. Whoever
// asks after a change does not get what was read before it.
func (s *Store) authenticateOnce(ctx context.Context, name string, hash [sha256.Size]byte) (knownCaller, error) {
	since := s.callers.changes()
	found, err := s.lookups.join(ctx, string(hash[:])+strconv.Itoa(since), func(ctx context.Context) (knownCaller, error) {
		caller, err := s.authenticate(ctx, name, hash)
		if err == nil {
			s.callers.keep(hash, caller, since)
		}
		return caller, err
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = bucket.Failed(err, "find the token "+name)
	}
	return found, err
}

// authenticate reads the token and its member; CodeNotFound when one of them does not exist, or the hash differs.
func (s *Store) authenticate(ctx context.Context, name string, hash [sha256.Size]byte) (knownCaller, error) {
	t, tag, err := s.getToken(ctx, name)
	if bucket.Unreadable(err) != nil && s.sealed.Outdated() == nil {
		err = bucket.Failed(err, "the access token "+name+" cannot be checked: use another token, or have an admin remove "+
			"this one with `deployctl token rm "+name+"` and make another")
	}
	if err != nil {
		return knownCaller{}, err
	}
	if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(hash[:])), []byte(t.Hash)) != 1 {
		return knownCaller{}, bucket.Failed(bucket.ErrAbsent, "find the token "+name)
	}
	authority, err := s.authorityOf(ctx, t)
	if err != nil {
		return knownCaller{}, err
	}
	now := s.sealed.Now().UTC()
	if now.Sub(t.Used) > usedStep {
		t.Used = now
		go func() { // a failure to record the use is no reason to reject the token, and nobody waits for it
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), usedPatience)
			defer stop()
			_ = panics.Do("noting that a token is used", func() error {
				return s.putToken(ctx, t, bucket.Condition{Tag: tag})
			})
		}()
	}
	caller := deployments.Caller{Token: t.Name, Member: t.Member, Made: t.Created, Authority: authority}
	if t.Origin != nil {
		caller.Identity = t.Origin.Identity
	}
	return knownCaller{Caller: caller, within: t.Within(), expires: t.Expires, read: now}, nil
}

// authorityOf returns what a token may do, by its member's grants and its origin's; CodeNotFound when one of them is
// gone.
func (s *Store) authorityOf(ctx context.Context, t storedToken) (deployments.Authority, error) {
	var member deployments.Member
	if t.Member != "" {
		var err error
		if member, err = s.Member(ctx, t.Organization, t.Member); err == nil && !member.Created.Equal(t.Since) {
			err = bucket.Failed(bucket.ErrAbsent, "find the member of the token "+t.Name)
		}
		if err != nil {
			return deployments.Authority{}, err
		}
	}
	return s.originAuthority(ctx, t.Origin, deployments.AuthorityOf(t.Token, member.All()))
}

// HasAdmin reports whether there is an unexpired token of an admin of every organization.
func (s *Store) HasAdmin(ctx context.Context) (bool, error) {
	// What has an origin lasts no longer than that.
	list, err := s.tokensWhere(ctx, func(t deployments.Token) bool {
		return t.Origin == nil && t.Within() == deployments.AnyOrganization
	})
	if err == nil {
		err = s.sealed.Outdated() // admin tokens may be among those that cannot be read
	}
	if err != nil {
		return false, err
	}
	for _, t := range list {
		var member deployments.Member
		if t.Member != "" {
			member, err = s.Member(ctx, t.Organization, t.Member)
			if err != nil && (deployments.CodeOf(err) == deployments.CodeNotFound || bucket.Unreadable(err) != nil) {
				continue // an unusable token
			} else if err != nil {
				return false, err
			}
		}
		if deployments.AuthorityOf(t, member.All()).AdministersAll() &&
			(t.Expires.IsZero() || t.Expires.After(s.sealed.Now())) {
			return true, nil
		}
	}
	return false, nil
}

func (s *Store) putToken(ctx context.Context, t storedToken, c bucket.Condition) error {
	return s.sealed.PutJSON(ctx, TokenFolder+t.Name, t, c)
}

func (s *Store) getToken(ctx context.Context, name string) (t storedToken, tag string, err error) {
	tag, err = s.sealed.GetJSON(ctx, TokenFolder+name, &t)
	return t, tag, err
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
