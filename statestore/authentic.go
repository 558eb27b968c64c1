package statestore

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
)

// A head is not sealed but readable. It has a MAC and the digests of the latest checkpoints, so a change that the
// service did not make is detected (docs/adr/0017). An older head that is put back with its own MAC is not detected;
// see docs/production.md.

// purposeHeads is the purpose of the key that authenticates heads.
const purposeHeads = "heads"

// keptDigests limits Head.Digests.
const keptDigests = 100

// headMAC returns the MAC that a head's JSON should have, and the one it has. The MAC covers the stack's name and all
// fields except the MAC, sorted by name and without spaces.
func (s *Store) headMAC(name deployments.StackName, data []byte) (right, given string, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return "", "", err
	}
	if mac, ok := fields["mac"]; ok {
		if err := json.Unmarshal(mac, &given); err != nil {
			return "", "", err
		}
		delete(fields, "mac")
	}
	canonical, err := json.Marshal(fields)
	if err != nil {
		return "", "", err
	}
	sum := s.keys.Box(purposeHeads).Digest(append([]byte(name.String()+"\x00"), canonical...))
	return hex.EncodeToString(sum), given, nil
}

// authentic reports, as CodeFormat, that this service did not write a head. A head without a MAC is accepted only until
// the heads of the bucket have been adopted.
func (s *Store) authentic(name deployments.StackName, key string, data []byte) error {
	right, given, err := s.headMAC(name, data)
	switch {
	case err != nil:
		return damagedHead(key, err)
	case given == "" && !s.authenticated.Load(), hmac.Equal([]byte(right), []byte(given)):
		return nil
	}
	return deployments.Errorf(deployments.CodeFormat,
		"%s was not written by this service: put back the last good copy of this object, or, if the "+
			"change is meant, "+
			"accept it with `deployctl key adopt %s`", key, name)
}

// checked reports, as CodeFormat, that a checkpoint does not have the digest in its stack's head.
func (s *Store) checked(ctx context.Context, name deployments.StackName, version int, data []byte) error {
	number := strconv.Itoa(version)
	s.mu.Lock()
	digest, ok := s.names[name.String()].digests[number]
	s.mu.Unlock()
	sum := sha256Hex(data)
	if ok && digest == sum {
		return nil
	}
	h, err := s.Head(ctx, name) // the cached head may be outdated
	if err != nil {
		return err
	}
	// the head is from a release without digests, the version is too old to have one, or it matches
	if digest, ok = h.Digests[number]; !ok || digest == sum {
		return nil
	}
	return unusable(checkpointKey(name, version), fmt.Errorf("it was not written by this service, "+
		"which `deployctl key adopt %s` accepts", name))
}

// AdoptStack accepts the head and the newest checkpoint of a stack as they are, whoever wrote them.
func (s *Store) AdoptStack(ctx context.Context, name deployments.StackName) error {
	if err := name.Validate(); err != nil {
		return err
	}
	key := stackKey(name, "head.json")
	for {
		o, err := s.objects.Get(ctx, key)
		if errors.Is(err, ErrAbsent) {
			return s.absent(ctx, name)
		}
		if err != nil {
			return failed(err, "read "+key)
		}
		h, err := parseHead(key, o.Data)
		if err != nil {
			return err
		}
		if h.Version > 0 {
			if data, err := s.checkpointJSON(ctx, name, h.Version); err == nil {
				h.Digest = sha256Hex(data)
				h.keepDigest()
			}
		}
		s.cacheIdentity(name, Head{})
		err = s.writeHead(ctx, name, h, Condition{Tag: o.Tag})
		if !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// keepDigest stores the digest of the newest checkpoint and drops those of old ones.
func (h *Head) keepDigest() {
	h.Digests = maps.Clone(h.Digests) // the map may be shared
	if h.Digests == nil {
		h.Digests = map[string]string{}
	}
	h.Digests[strconv.Itoa(h.Version)] = h.Digest
	for number := range h.Digests {
		if n, err := strconv.Atoi(number); err != nil || n <= h.Version-keptDigests {
			delete(h.Digests, number)
		}
	}
}

// adoptHeads accepts, once, every head of a bucket that was written before heads were authenticated, and records that
// in the keyring: from then on a head without a MAC is rejected.
func (s *Store) adoptHeads(ctx context.Context) error {
	stacks, err := s.ListStacks(ctx, "", "")
	if err != nil {
		return err
	}
	for _, info := range stacks {
		if err := s.AdoptStack(ctx, info.Stack); err != nil && deployments.CodeOf(err) != deployments.CodeNotFound &&
			unreadable(err) == nil {
			return err
		}
	}
	for {
		content, tag, err := s.readKeyring(ctx)
		if err != nil {
			return err
		}
		content.Authenticated = true
		err = s.writeKeyring(ctx, content, Condition{Tag: tag})
		if errors.Is(err, ErrChanged) {
			continue
		}
		if err == nil {
			s.useKeyring(content, "")
		}
		return err
	}
}
