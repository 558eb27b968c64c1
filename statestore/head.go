package statestore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Format is the version of the stored state that this code writes. It reads that one and all earlier ones.
var Format = migrations.format()

// migrations is empty: there has been only one format.
var migrations formats

// formats lead from each format of a head to the next: formats[n] turns the fields of format n+1 into format n+2.
type formats []func(fields map[string]json.RawMessage) error

// format returns the last format.
func (f formats) format() int { return len(f) + 1 }

// Head is the content of head.json: the stack's version and its active update.
type Head struct {
	Format int `json:"format"`
	// ID is the stack's identity, created with it; its keys are derived from it, and a rename keeps it.
	ID string `json:"id"`
	// Identity is what the names and marks of the stack's resources are derived from; empty in stacks of earlier
	// releases. See package identities.
	Identity string `json:"identity,omitempty"`
	// Version of the latest checkpoint; 0 when there is none. Digest is the SHA-256 of its deployment JSON.
	Version   int    `json:"version"`
	Digest    string `json:"digest,omitempty"`
	Resources int    `json:"resources"`
	// Pending counts the pending operations of that checkpoint; builds before it did not.
	Pending int       `json:"pending,omitempty"`
	Updated time.Time `json:"updated,omitzero"`
	// Next is the next version: greater than every version that was given out.
	Next int `json:"next"`
	// Active is the update that has the stack, and its writer.
	Active *Active `json:"active,omitempty"`
	// Fence counts the claims of this stack: each claim has a greater one.
	Fence int `json:"fence"`
	// Requests are the latest request ids and the versions they were given, newest last: those of the last
	// keptRequestsFor, and at least keptRequests.
	Requests []RequestVersion  `json:"requests,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	// Peer is the stack's other name, during a rename and after one that was interrupted.
	Peer string `json:"peer,omitempty"`
	// States are the versions that have had a checkpoint, as ranges from a first to a last one, in order.
	States [][2]int `json:"states,omitempty"`
	// Nonce differs with every write, so that a writer recognises its own.
	Nonce string `json:"nonce"`
	// MAC authenticates all other fields.
	MAC string `json:"mac,omitempty"`
}

// Active describes the claim of a stack.
type Active struct {
	Version   string `json:"version"`
	RequestID string `json:"requestID,omitempty"`
	Writer    string `json:"writer"`
	// Run is the workflow run that executes the update; empty for an import, a restore, a rename and a removal.
	Run   string    `json:"run,omitempty"`
	Since time.Time `json:"since"`
	// EverySave says that each save of the update is stored; earlier builds left out those without deltas.
	EverySave bool `json:"everySave,omitempty"`
}

// RequestVersion records the version that a request was given.
type RequestVersion struct {
	ID      string    `json:"id"`
	Version int       `json:"version"`
	At      time.Time `json:"at"` // of the claim
}

// keptRequests and keptRequestsFor say what stays in Head.Requests. A stack takes no request that was submitted longer
// than deployments.RequestWindow ago; the rest is for clocks that differ.
const keptRequests, keptRequestsFor = 50, 3 * deployments.RequestWindow / 2

// Contract returns the head as activities send it to workflows.
func (h Head) Contract(name deployments.StackName) deployments.Head {
	out := deployments.Head{StackID: h.ID, Version: h.Version, Next: h.Next}
	if h.Active != nil {
		out.Active = &deployments.UpdateName{StackName: name, Version: h.Active.Version}
	}
	for _, r := range h.Requests {
		u := deployments.UpdateName{StackName: name, Version: strconv.Itoa(r.Version)}
		out.Answered = append(out.Answered, deployments.AnsweredRequest{RequestID: r.ID, At: r.At,
			Accepted: deployments.Accepted{Update: u}})
	}
	return out
}

// Head reads a stack's head; CodeNotFound when there is no such stack, CodeFormat when the head is damaged or lost.
func (s *Store) Head(ctx context.Context, name deployments.StackName) (Head, error) {
	h, _, err := s.readHead(ctx, name)
	return h, err
}

// StackID returns the identity of a stack, Head.ID, which may be cached; CodeNotFound when there is no such stack.
func (s *Store) StackID(ctx context.Context, name deployments.StackName) (string, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return "", err
	}
	return r.ID, nil
}

func (s *Store) readHead(ctx context.Context, name deployments.StackName) (Head, string, error) {
	if err := name.Validate(); err != nil {
		return Head{}, "", err
	}
	key := stackobjects.Key(name, "head.json")
	read := s.headReads.begin(name)
	defer read()
	o, err := s.objects.Get(ctx, key)
	if err != nil {
		read() // what follows may ask for the identity
	}
	if errors.Is(err, bucket.ErrAbsent) {
		s.cacheIdentity(name, Head{})
		if absent := s.absent(ctx, name); deployments.CodeOf(absent) != deployments.CodeFormat {
			return Head{}, "", absent
		} else if o, err = s.objects.Get(ctx, key); errors.Is(err, bucket.ErrAbsent) { // else the stack was created meanwhile
			return Head{}, "", absent
		}
	}
	if err != nil {
		return Head{}, "", bucket.Failed(err, "read "+key)
	}
	h, err := parseHead(key, o.Data)
	if err == nil {
		err = s.authentic(name, key, o.Data)
	}
	if err != nil {
		return Head{}, "", err
	}
	s.cacheIdentity(name, h)
	s.heads.keep(name, o)
	return h, o.Tag, nil
}

// parseHead parses a head of any format up to the current one.
func parseHead(key string, data []byte) (Head, error) {
	data, err := migrations.bring(key, data)
	if err != nil {
		return Head{}, err
	}
	var h Head
	if err := json.Unmarshal(data, &h); err != nil {
		return Head{}, damagedHead(key, err)
	}
	if h.ID == "" || h.Version < 0 {
		return Head{}, damagedHead(key, errors.New("it does not say which stack it is of"))
	}
	h.Format = Format
	return h, nil
}

// bring converts a head of any format to the newest one.
func (f formats) bring(key string, data []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, damagedHead(key, err)
	}
	var format int
	if err := json.Unmarshal(fields["format"], &format); err != nil || format < 1 {
		return nil, damagedHead(key, errors.New("it has no format number"))
	}
	if format > f.format() {
		return nil, deployments.Errorf(deployments.CodeFormat,
			"this state was written by a newer deployctl (format %d; this one reads up to %d): use that version (%s)",
			format, f.format(), key)
	}
	for _, migrate := range f[format-1:] {
		if err := migrate(fields); err != nil {
			return nil, bucket.Damaged(key, err)
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, bucket.Damaged(key, err)
	}
	return data, nil
}

// damagedHead returns the error about a head that cannot be parsed.
func damagedHead(key string, err error) error {
	return deployments.Errorf(deployments.CodeFormat,
		"%s is damaged: %w; put back the last good copy of this object (an earlier version of the bucket's, or of "+
			"its backup)", key, err)
}

// changeHead changes a head by compare-and-swap: change gets the current head and reports whether it must be written.
// It is called again when another writer was faster. At first it may get a head that was read or written a moment ago:
// if that is not the current one, nothing is written, and what change says of it counts for nothing.
func (s *Store) changeHead(
	ctx context.Context, name deployments.StackName, change func(*Head) (write bool, err error),
) (Head, error) {
	return s.changeKnownHead(ctx, name, headKnownFor, change)
}

// changeKnownHead is changeHead of a head that was read or written within a time.
func (s *Store) changeKnownHead(
	ctx context.Context, name deployments.StackName, within time.Duration,
	change func(*Head) (write bool, err error),
) (Head, error) {
	if h, tag, known := s.knownHead(name, within); known {
		if write, err := change(&h); err == nil && write {
			err = s.writeHead(ctx, name, h, bucket.Condition{Tag: tag})
			if !errors.Is(err, bucket.ErrChanged) {
				return h, err
			}
		}
	}
	return s.changeReadHead(ctx, name, change)
}

// changeReadHead is changeHead for whoever needs what the head says now, also if it is not written.
func (s *Store) changeReadHead(
	ctx context.Context, name deployments.StackName, change func(*Head) (write bool, err error),
) (Head, error) {
	for {
		h, tag, err := s.readHead(ctx, name)
		if err != nil {
			return Head{}, err
		}
		write, err := change(&h)
		if err != nil || !write {
			return h, err
		}
		err = s.writeHead(ctx, name, h, bucket.Condition{Tag: tag})
		if !errors.Is(err, bucket.ErrChanged) {
			return h, err
		}
	}
}

// Expect reads the head of a stack, unless it was just read, for whoever is about to change it. What is wrong with it
// is found out then.
func (s *Store) Expect(ctx context.Context, name deployments.StackName) {
	if _, known := s.heads.get(name, headKnownFor); !known {
		_, _, _ = s.readHead(ctx, name)
	}
}

// knownHead returns a head that was read or written within a time, if there is one.
func (s *Store) knownHead(name deployments.StackName, within time.Duration) (h Head, tag string, known bool) {
	o, known := s.heads.get(name, within)
	if !known {
		return Head{}, "", false
	}
	h, err := parseHead(stackobjects.Key(name, "head.json"), o.Data)
	return h, o.Tag, err == nil
}

func (s *Store) writeHead(ctx context.Context, name deployments.StackName, h Head, c bucket.Condition) error {
	s.heads.drop(name)
	h.Nonce, h.MAC = rand.Text(), ""
	data, err := json.Marshal(h)
	if err == nil {
		h.MAC, _, err = s.sealed.MAC(purposeHeads, name.String(), data)
	}
	if err == nil {
		data, err = json.MarshalIndent(h, "", "  ")
	}
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write the head of %s: %w", name, err)
	}
	tag, err := s.objects.Put(ctx, stackobjects.Key(name, "head.json"), data, c)
	if err == nil {
		s.cacheIdentity(name, h)
		s.heads.keep(name, bucket.Object{Data: data, Tag: tag})
	}
	return bucket.Failed(err, "write the head of "+name.String())
}
