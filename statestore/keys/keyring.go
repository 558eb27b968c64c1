package keys

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// The service's keys are stored in the bucket, wrapped by a master key or a key management service (docs/adr/0016). A
// process that cannot unwrap them has the wrong key, and learns that before it writes anything.

var ringKey = bucket.Key("keys", "ring.json")

// keyringFormat is the newest format of storedKeyring, with the store's identity, which older releases would drop; a
// keyring without an identity has keyringFormatWithoutIdentity.
const keyringFormat, keyringFormatWithoutIdentity = 2, 1

// storedKeyring is the content of the keyring's object.
type storedKeyring struct {
	Format int    `json:"format"`
	Wraps  []wrap `json:"wraps"` // of the same content, by different keepers
}

type wrap struct {
	Keeper string `json:"keeper"`
	Data   []byte `json:"data"`
}

// keyringContent is the content that is wrapped.
type keyringContent struct {
	seal.Keys
	// Authenticated means that every head of the bucket has a MAC.
	Authenticated bool `json:"authenticated"`
	// Store is the store's identity; empty in a bucket from before there were identities.
	Store string `json:"store,omitempty"`
}

// keyTimeout limits how long a reader waits for a key that this process does not have yet.
const keyTimeout = 10 * time.Second

// Open reads the service's keys, or creates them for an empty bucket.
func (s *Store) Open(ctx context.Context) error {
	content, tag, err := s.readKeyring(ctx)
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		content, err = s.createKeyring(ctx)
	case err == nil:
		s.unset.Store(nil)
	}
	if err != nil {
		return err
	}
	s.useKeyring(content, tag)
	s.ring.OnUnknown(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), keyTimeout)
		defer cancel()
		return s.reloadKeyring(ctx)
	})
	return nil
}

// useKeyring uses keys that were read with a tag; empty for keys that were just written.
func (s *Store) useKeyring(content keyringContent, tag string) {
	s.ring.Replace(content.Keys)
	s.authenticated.Store(content.Authenticated)
	s.identity.Store(content.Store)
	s.keyringTag.Store(tag)
}

// rotate adds a new sealing key, which is the current one from then on.
func (c *keyringContent) rotate(now time.Time) seal.SealingKey {
	key := seal.NewSealingKey(now)
	c.Sealing[len(c.Sealing)-1].Retired = now
	c.Sealing = append(c.Sealing, key)
	return key
}

// Authenticated reports whether every head of the bucket has a MAC.
func (s *Store) Authenticated() bool { return s.authenticated.Load() }

// Authenticate records that every head of the bucket has a MAC. With a new sealing key, a process that has the older
// keyring cannot read what is written from then on: it cannot go on unnoticed once that is put back.
func (s *Store) Authenticate(ctx context.Context) error {
	return s.changeKeyring(ctx, func(content *keyringContent) {
		if !content.Authenticated {
			content.rotate(s.now().UTC())
		}
		content.Authenticated = true
	})
}

// changeKeyring changes the keyring by compare-and-swap, and uses it. It does not run beside
// reloadKeyring: what that has read before would pass for an older copy after it.
func (s *Store) changeKeyring(ctx context.Context, change func(*keyringContent)) error {
	s.keyringUse.Lock()
	defer s.keyringUse.Unlock()
	for {
		content, tag, err := s.readKeyring(ctx)
		if err == nil {
			err = s.succeeds(content)
		}
		if err != nil {
			return err
		}
		change(&content)
		err = s.writeKeyring(ctx, content, bucket.Condition{Tag: tag})
		if errors.Is(err, bucket.ErrChanged) {
			continue
		}
		if err == nil {
			s.useKeyring(content, "")
		}
		return err
	}
}

// reloadKeyring uses the keys that another process has created. An older copy of the keyring that was put back is
// rejected.
func (s *Store) reloadKeyring(ctx context.Context) error {
	s.keyringUse.Lock()
	defer s.keyringUse.Unlock()
	if tag, err := s.objects.Tag(ctx, ringKey); err == nil && tag == s.keyringTag.Load() {
		s.outdated.Store(nil)
		return nil // a key management service need not be asked
	}
	content, tag, err := s.readKeyring(ctx)
	if err == nil {
		err = s.succeeds(content)
	}
	switch {
	case err == nil:
		s.useKeyring(content, tag)
		s.outdated.Store(nil)
		return nil
	case errors.Is(err, bucket.ErrAbsent):
		return deployments.Errorf(deployments.CodeNotFound, "%s is missing, and no process can start without it: put "+
			"it back from a copy of the bucket "+
			"while one that has the keys still runs (%w)", ringKey, err)
	case tag != "": // it was read
		err = deployments.Errorf(deployments.CodeOf(err), "this process may lack the newest keys of the bucket: %w; "+
			"restart every serve and worker "+
			"with the service's current key", err)
		s.outdated.Store(&err)
	}
	return err
}

// succeeds reports, as CodeFormat, that a keyring is older than the one that this process uses: it lacks the key with
// which the process seals, or is from before what is recorded once and for ever.
func (s *Store) succeeds(content keyringContent) error {
	if s.authenticated.Load() && !content.Authenticated {
		return deployments.Errorf(deployments.CodeFormat, "%s is an older copy: it is from before the heads of this bucket "+
			"were authenticated; put back the latest", ringKey)
	}
	current := s.ring.Keys().Current().ID()
	for _, key := range content.Sealing {
		if key.ID() == current {
			return nil
		}
	}
	return deployments.Errorf(deployments.CodeFormat, "%s is an older copy: it lacks the key %s; put back the latest",
		ringKey, current)
}

// Outdated returns why this process may lack the newest keys of the bucket, and what to do; nil when it has them,
// as far as it knows.
func (s *Store) Outdated() error {
	if err := s.outdated.Load(); err != nil {
		return *err
	}
	return nil
}

// readKeyring reads and unwraps the keys; ErrAbsent is in the chain when there are none. The tag is returned even when
// the keys cannot be unwrapped.
func (s *Store) readKeyring(ctx context.Context) (keyringContent, string, error) {
	var content keyringContent
	o, err := s.objects.Get(ctx, ringKey)
	if err != nil {
		return content, "", bucket.Failed(err, "read "+ringKey)
	}
	var stored storedKeyring
	if err := json.Unmarshal(o.Data, &stored); err != nil {
		return content, o.Tag, deployments.Errorf(deployments.CodeFormat,
			"%s is damaged: %w; put it back from a copy of the bucket", ringKey, err)
	}
	if stored.Format > keyringFormat {
		return content, o.Tag, deployments.Errorf(deployments.CodeFormat,
			"%s was written by a newer deployctl (format %d): use that version", ringKey, stored.Format)
	}
	plain, err := s.unwrap(ctx, stored)
	if err != nil {
		return content, o.Tag, err
	}
	if err := json.Unmarshal(plain, &content); err != nil || len(content.Root) == 0 || len(content.Sealing) == 0 {
		return content, o.Tag, deployments.Errorf(deployments.CodeFormat, "%s is damaged: it holds no keys", ringKey)
	}
	return content, o.Tag, nil
}

// unwrap unwraps the keys with the first keeper that can: those that the keyring names come first, and then all,
// because a key may have several names.
func (s *Store) unwrap(ctx context.Context, stored storedKeyring) ([]byte, error) {
	var wrapped, given []string
	var why error
	for _, exact := range []bool{true, false} {
		for _, w := range stored.Wraps {
			for _, keeper := range s.keepers {
				if (keeper.ID() == w.Keeper) != exact {
					continue
				}
				plain, err := keeper.Unwrap(ctx, w.Data)
				if err == nil {
					return plain, nil
				}
				if exact {
					why = errors.Join(why, fmt.Errorf("%s: %w", keeper.ID(), err))
				}
			}
		}
	}
	if why != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the keys of the bucket (%s) cannot be opened: %w",
			ringKey, why)
	}
	for _, w := range stored.Wraps {
		wrapped = append(wrapped, w.Keeper)
	}
	for _, keeper := range s.keepers {
		given = append(given, keeper.ID())
	}
	return nil, deployments.Errorf(deployments.CodeInvalid,
		"this service has another key (%s) than the one that the bucket is sealed with (%s): start it with that one "+
			"(DEPLOYCTL_KEY, key-file or key-url)",
		strings.Join(given, ", "), strings.Join(wrapped, ", "))
}

// createKeyring creates the keys of a bucket that has none. In a bucket with stacks or tokens it does so only when
// asked: such a bucket was written by an older release, or its keys were removed.
func (s *Store) createKeyring(ctx context.Context) (keyringContent, error) {
	used, err := s.inUse(ctx)
	if err != nil {
		return keyringContent{}, err
	}
	if used && !s.adopt {
		if content, _, err := s.readKeyring(ctx); !errors.Is(err, bucket.ErrAbsent) { // created meanwhile
			return content, err
		}
		return keyringContent{}, deployments.Errorf(deployments.CodeInvalid,
			"the bucket is in use and has no keys: put %s back from a copy of the bucket, or an earlier version of "+
				"it; only a bucket of an older deployctl, "+
				"which has never had that object, is taken over with `deployctl key adopt`, once and with the "+
				"service's key", ringKey)
	}
	content := keyringContent{Authenticated: !used}
	if content.Keys, err = s.firstKeys(); err != nil {
		return content, err
	}
	if used {
		s.ring.Replace(content.Keys)
		if err := s.opensAll(ctx); err != nil {
			return content, err
		}
		return s.writeFirst(ctx, content)
	}
	content.Store = newIdentity()
	if s.keep {
		s.unset.Store(&content)
		return content, nil
	}
	return s.writeFirst(ctx, content)
}

// firstKeys returns the keys derived from the master key, with which everything was sealed before there were others;
// random ones without a master key.
func (s *Store) firstKeys() (seal.Keys, error) {
	for _, keeper := range s.keepers {
		if m, ok := keeper.(*seal.MasterKeeper); ok {
			keys, err := seal.MasterKeys(m.Master())
			if err == nil {
				keys.Sealing[0].Created = s.now().UTC()
			}
			return keys, err
		}
	}
	root := make([]byte, 32)
	_, _ = rand.Read(root) // never fails
	return seal.Keys{Root: root, Sealing: []seal.SealingKey{seal.NewSealingKey(s.now())}}, nil
}

// inUse reports whether the bucket has sealed objects or stacks.
func (s *Store) inUse(ctx context.Context) (bool, error) {
	for _, folder := range s.layout.InUse {
		l, err := s.objects.List(ctx, bucket.Query{Prefix: folder, Limit: 1})
		if err != nil {
			return false, bucket.Failed(err, "list "+folder)
		}
		if len(l.Keys) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// writeKeyring wraps the keys with every keeper, so that each can unwrap them.
func (s *Store) writeKeyring(ctx context.Context, content keyringContent, c bucket.Condition) error {
	plain, err := json.Marshal(content)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", ringKey, err)
	}
	stored := storedKeyring{Format: keyringFormatWithoutIdentity}
	if content.Store != "" {
		stored.Format = keyringFormat
	}
	for _, keeper := range s.keepers {
		data, err := keeper.Wrap(ctx, plain)
		if err != nil {
			return deployments.Errorf(deployments.CodeUnavailable, "wrap the service's keys with %s: %w", keeper.ID(),
				err)
		}
		stored.Wraps = append(stored.Wraps, wrap{keeper.ID(), data})
	}
	data, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", ringKey, err)
	}
	_, err = s.objects.Put(ctx, ringKey, data, c)
	return bucket.Failed(err, "write "+ringKey)
}

// followEvery is how often a process checks for new keys.
const followEvery = 30 * time.Second

// Follow keeps the keys up to date until ctx ends. It logs failures, once for each reason.
func (s *Store) Follow(ctx context.Context, log *slog.Logger) {
	told := ""
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err := s.reloadKeyring(ctx) // what fails now is retried later, or when a key is needed
			if err != nil && err.Error() != told && ctx.Err() == nil {
				log.Error("the keys of the bucket cannot be read", "error", err)
			}
			told = fmt.Sprint(err)
		}
	}
}
