package statestore

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
	"github.com/deployctl/deployctl/internal/seal"
)

// The service's keys are kept in the bucket, wrapped by a master key or a key management service (docs/adr/0016). So
// who cannot unwrap them has another key than those that use the bucket, and finds that out before it writes anything.

var ringKey = join("keys", "ring.json")

// keyringFormat is the newest format of storedRing, that of a store with an identity, which older versions would lose;
// without one it is plainFormat.
const keyringFormat, keyringFormatWithoutIdentity = 2, 1

// storedKeyring is what stands in the bucket of the service's keys.
type storedKeyring struct {
	Format int    `json:"format"`
	Wraps  []wrap `json:"wraps"` // of the same, by different keepers
}

type wrap struct {
	Keeper string `json:"keeper"`
	Data   []byte `json:"data"`
}

// keyringContent is what is wrapped.
type keyringContent struct {
	seal.Keys
	// Authenticated: every head of the bucket has a MAC, so one without was not written by this service.
	Authenticated bool `json:"authenticated"`
	// Store is the store's identity; empty in a bucket of the time before there were any.
	Store string `json:"store,omitempty"`
}

// keyTimeout bounds how long somebody waits who meets a key that is not known yet.
const keyTimeout = 10 * time.Second

// openKeyring reads the service's keys, or makes them for an empty bucket.
func (s *Store) openKeyring(ctx context.Context) error {
	content, tag, err := s.readKeyring(ctx)
	switch {
	case errors.Is(err, ErrAbsent):
		content, err = s.createKeyring(ctx)
	case err == nil:
		s.unset.Store(nil)
	}
	if err != nil {
		return err
	}
	s.useKeyring(content, tag)
	s.keys.OnUnknown(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), keyTimeout)
		defer cancel()
		return s.reloadKeyring(ctx)
	})
	return nil
}

// useKeyring takes over keys that were read with a tag, which is empty for what was just written.
func (s *Store) useKeyring(content keyringContent, tag string) {
	s.keys.Replace(content.Keys)
	s.authenticated.Store(content.Authenticated)
	s.identity.Store(content.Store)
	s.keyringTag.Store(tag)
}

// reloadKeyring takes over the keys that another process has made. An older copy of the keys, which somebody has put back,
// is not taken.
func (s *Store) reloadKeyring(ctx context.Context) error {
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
	case errors.Is(err, ErrAbsent):
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

// succeeds reports, as CodeFormat, that keys lack the one that this process seals with.
func (s *Store) succeeds(content keyringContent) error {
	current := s.keys.Keys().Current().ID()
	for _, key := range content.Sealing {
		if key.ID() == current {
			return nil
		}
	}
	return deployments.Errorf(deployments.CodeFormat, "%s is an older copy: it lacks the key %s; put back the latest",
		ringKey, current)
}

// KeysOutdated returns why this process may lack the newest keys of the bucket, with what to do about it; nil when it
// has them, as far as it knows.
func (s *Store) KeysOutdated() error {
	if err := s.outdated.Load(); err != nil {
		return *err
	}
	return nil
}

// readKeyring reads and unwraps the keys; ErrAbsent is in the chain when there are none. The tag is that of what
// was read, also of what cannot be opened.
func (s *Store) readKeyring(ctx context.Context) (keyringContent, string, error) {
	var content keyringContent
	o, err := s.objects.Get(ctx, ringKey)
	if err != nil {
		return content, "", failed(err, "read "+ringKey)
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

// unwrap opens the keys with the first keeper that can: of those that they name, or of all, for a key may have several
// names.
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

// createKeyring makes the keys of a bucket that has none. In one that has stacks or tokens it is done only when it is asked
// for: such a bucket is of an older version of deployctl, or somebody has taken its keys away.
func (s *Store) createKeyring(ctx context.Context) (keyringContent, error) {
	used, err := s.inUse(ctx)
	if err != nil {
		return keyringContent{}, err
	}
	if used && !s.adopt {
		if content, _, err := s.readKeyring(ctx); !errors.Is(err, ErrAbsent) { // made meanwhile, with the first stack
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
		s.keys.Replace(content.Keys)
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

// firstKeys are those of a service's master key, with which everything was sealed before there were others; without
// one, random.
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

// inUse tells whether the bucket holds something that is sealed or stands for a stack.
func (s *Store) inUse(ctx context.Context) (bool, error) {
	for _, folder := range []string{"stacks/", tokenFolder, memberFolder, "blobs/", "removed/", auditFolder,
		organizationFolder} {
		l, err := s.objects.List(ctx, Query{Prefix: folder, Limit: 1})
		if err != nil {
			return false, failed(err, "list "+folder)
		}
		if len(l.Keys) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// writeKeyring wraps the keys with every keeper, so that each of them opens them.
func (s *Store) writeKeyring(ctx context.Context, content keyringContent, c Condition) error {
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
	return failed(err, "write "+ringKey)
}

// followEvery is how often a process looks whether its keys have been replaced.
const followEvery = 30 * time.Second

// FollowKeys keeps the keys up to date until ctx ends. It logs why it cannot, once for each reason.
func (s *Store) FollowKeys(ctx context.Context, log *slog.Logger) {
	told := ""
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err := s.reloadKeyring(ctx) // what cannot be read now is read later, or when a key is missed
			if err != nil && err.Error() != told && ctx.Err() == nil {
				log.Error("the keys of the bucket cannot be read", "error", err)
			}
			told = fmt.Sprint(err)
		}
	}
}
