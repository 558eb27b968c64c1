package statestore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/seal"
)

// storedToken is a token at rest. A token's text is "dctl." and its name, "." and 256 random bits; only its hash is kept.
type storedToken struct {
	deployments.Token
	Hash string `json:"hash"`
}

const (
	tokenFolder = "tokens/"
	tokenPrefix = "dctl."
	// usedStep is how precisely the last use of a token is remembered.
	usedStep = time.Hour
)

// CreateToken makes a token and returns its text, which nobody can find out again; CodeExists when the name is taken.
func (s *Store) CreateToken(ctx context.Context, name string) (string, error) {
	if err := deployments.ValidateName("token", name); err != nil {
		return "", err
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	text := tokenPrefix + name + "." + hex.EncodeToString(secret[:])
	t := storedToken{Token: deployments.Token{Name: name, Created: s.now().UTC()}, Hash: sha256Hex([]byte(text))}
	err := s.putToken(ctx, t, Condition{Absent: true})
	if errors.Is(err, ErrChanged) {
		return "", deployments.Errorf(deployments.CodeExists, "there is a token %s already: remove it first, or use another name", name)
	}
	return text, err
}

// ListTokens describes the tokens, sorted by name.
func (s *Store) ListTokens(ctx context.Context) ([]deployments.Token, error) {
	l, err := s.objects.List(ctx, Query{Prefix: tokenFolder})
	if err != nil {
		return nil, failed(err, "list the tokens")
	}
	tokens := make([]deployments.Token, 0, len(l.Keys))
	for _, key := range l.Keys {
		t, _, err := s.getToken(ctx, strings.TrimPrefix(key, tokenFolder))
		if errors.Is(err, ErrAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t.Token)
	}
	return tokens, nil
}

// RemoveToken makes a token worthless; CodeNotFound when there is none of this name.
func (s *Store) RemoveToken(ctx context.Context, name string) error {
	if err := deployments.ValidateName("token", name); err != nil {
		return err
	}
	if _, _, err := s.getToken(ctx, name); err != nil {
		if errors.Is(err, ErrAbsent) {
			return deployments.Errorf(deployments.CodeNotFound, "there is no token %s", name)
		}
		return err
	}
	return failed(s.objects.Delete(ctx, tokenFolder+name), "remove the token "+name)
}

// Authenticate gives the token with this text; CodeUnauthorized when there is none.
func (s *Store) Authenticate(ctx context.Context, text string) (deployments.Token, error) {
	wrong := deployments.Errorf(deployments.CodeUnauthorized, "the access token is not valid: it was removed, or belongs to another service")
	name, _, ok := cutLast(strings.TrimPrefix(text, tokenPrefix), ".")
	if !ok || deployments.ValidateName("token", name) != nil {
		return deployments.Token{}, wrong
	}
	t, tag, err := s.getToken(ctx, name)
	if errors.Is(err, ErrAbsent) {
		return deployments.Token{}, wrong
	}
	if err != nil {
		return deployments.Token{}, err
	}
	hash := sha256.Sum256([]byte(text))
	if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(hash[:])), []byte(t.Hash)) != 1 {
		return deployments.Token{}, wrong
	}
	if now := s.now().UTC(); now.Sub(t.Used) > usedStep {
		t.Used = now
		_ = s.putToken(ctx, t, Condition{Tag: tag}) // a token is good even when this cannot be written
	}
	return t.Token, nil
}

func (s *Store) putToken(ctx context.Context, t storedToken, c Condition) error {
	plain, err := json.Marshal(t)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write the token %s: %w", t.Name, err)
	}
	key := tokenFolder + t.Name
	_, err = s.objects.Put(ctx, key, s.keys.Box(seal.PurposeStore).Seal(plain, key), c)
	return failed(err, "write the token "+t.Name)
}

func (s *Store) getToken(ctx context.Context, name string) (storedToken, string, error) {
	var t storedToken
	key := tokenFolder + name
	o, err := s.objects.Get(ctx, key)
	if err != nil {
		return t, "", failed(err, "read the token "+name)
	}
	plain, err := s.keys.Box(seal.PurposeStore).Open(o.Data, key)
	if err != nil {
		return t, "", err
	}
	if err := json.Unmarshal(plain, &t); err != nil {
		return t, "", damaged(key, err)
	}
	return t, o.Tag, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
