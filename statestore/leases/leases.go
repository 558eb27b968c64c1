package leases

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/heap"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

const (
	createdObject = "created"
	// JournalFolder is the folder of an update with its journal.
	JournalFolder = "journal"
	// SnapshotFolder is the folder of an update with what else its client has written.
	SnapshotFolder = "snapshot"
)

// Writer is the writer of the claim of an update that its client executes. EndWriter takes its place when the
// update ends: from then on nothing is accepted from the client.
const (
	Writer    = "#lease"
	EndWriter = "#lease-end"
)

// PutCreated stores or replaces an update that a client has created.
func (s *Store) PutCreated(ctx context.Context, c deployments.CreatedUpdate) error {
	u := deployments.CreatedName(c.Request.Stack, c.ID)
	return s.stacks.PutJSON(ctx, u.StackName, stackobjects.UpdateKey(u, createdObject), c)
}

// Created returns what PutCreated stored; CodeNotFound when there is none.
func (s *Store) Created(
	ctx context.Context, name deployments.StackName, id string,
) (c deployments.CreatedUpdate, err error) {
	u := deployments.CreatedName(name, id)
	if err := u.Validate(); err != nil {
		return c, err
	}
	_, err = s.stacks.GetJSON(ctx, name, stackobjects.UpdateKey(u, createdObject), &c)
	if errors.Is(err, bucket.ErrAbsent) {
		err = deployments.Errorf(deployments.CodeNotFound, "the stack %s has no update %s", name, id)
	}
	return c, err
}

// leasePurpose is the purpose of the texts of leases.
const leasePurpose = "lease"

// LeaseToken returns the text by which a client proves that it has a lease. Only this service can make and read it.
func (s *Store) LeaseToken(l deployments.Leased) string {
	plain, err := json.Marshal(l)
	if err != nil {
		return "" // a lease has no value that cannot be encoded
	}
	return base64.RawURLEncoding.EncodeToString(s.stacks.Sealed.Keys.Box(leasePurpose).Seal(plain, leasePurpose))
}

// LeaseOf returns the lease of a text that LeaseToken made.
func (s *Store) LeaseOf(text string) (l deployments.Leased, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		sealed, err = s.stacks.Sealed.Keys.Box(leasePurpose).Open(sealed, leasePurpose)
	}
	if err == nil {
		err = json.Unmarshal(sealed, &l)
	}
	switch {
	case err != nil:
		return l, deployments.Errorf(deployments.CodeUnauthorized, "this is not the token of an update of this service")
	case !s.stacks.Sealed.Now().Before(l.Expires):
		return l, deployments.Errorf(deployments.CodeForbidden, "the lease of update %s expired at %s", l.Update,
			l.Expires.UTC().Format("15:04:05 MST"))
	}
	return l, nil
}

// holdsLease reports, as CodeForbidden, that an update has lost the stack. It is called after each write of a snapshot:
// if the update still has the stack then, its end reads what was written.
func (s *Store) holdsLease(ctx context.Context, l writtenLease) error {
	err := s.of.Holds(ctx, l.update, l.fence)
	if deployments.CodeOf(err) == deployments.CodeConflict {
		return leaseOver(l.update)
	}
	return err
}

func leaseOver(u deployments.UpdateName) error {
	return deployments.Errorf(deployments.CodeForbidden, "update %s is over, or has lost its stack: what it did since "+
		"then is not in the state; run `pulumi refresh`", u)
}

// Snapshot is the first line of an object with the last whole deployment of a client.
type Snapshot struct {
	Sequence int    `json:"sequence"`
	Digest   string `json:"digest"`

	deployment []byte
	tag        string // of the stored object; empty when there is none
}

func snapshotKey(u deployments.UpdateName) string {
	return stackobjects.UpdateKey(u, SnapshotFolder, "last")
}

// lastSnapshot reads the last whole deployment of a client; the zero value when there is none. It is stored with a line
// of JSON before it, so that its bytes stay as they are.
func (s *Store) lastSnapshot(ctx context.Context, u deployments.UpdateName) (last Snapshot, err error) {
	data, tag, err := s.stacks.Get(ctx, u.StackName, snapshotKey(u))
	if errors.Is(err, bucket.ErrAbsent) {
		return last, nil
	}
	if err != nil {
		return last, err
	}
	line, deployment, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(line, &last); err != nil {
		return last, bucket.Damaged(snapshotKey(u), err)
	}
	last.deployment, last.tag = deployment, tag
	return last, nil
}

// Last returns the last whole deployment of a client, which is of its own memory; false when there is none.
func (s *Store) Last(ctx context.Context, u deployments.UpdateName) (deployment []byte, found bool, err error) {
	last, err := s.lastSnapshot(ctx, u)
	return last.deployment, last.tag != "", err
}

// WriteSnapshot implements deployments.LeasedState.
func (s *Store) WriteSnapshot(ctx context.Context, l deployments.Leased, sequence int, deployment []byte) error {
	return s.nextSnapshot(ctx, l, sequence, func(Snapshot) ([]byte, error) { return deployment, nil })
}

// PatchSnapshot implements deployments.LeasedState.
func (s *Store) PatchSnapshot(ctx context.Context, l deployments.Leased, p deployments.SnapshotPatch) error {
	return s.nextSnapshot(ctx, l, p.Sequence, func(last Snapshot) ([]byte, error) {
		deployment, err := edit(last.deployment, p.Edits)
		if err != nil || hexOf(deployment) != p.Digest {
			return nil, deployments.Errorf(deployments.CodeConflict,
				"the changes do not fit the last deployment of update %s: send the whole deployment", l.Update)
		}
		return deployment, nil
	})
}

// nextSnapshot stores what next makes of the last deployment, unless that has the sequence number already.
func (s *Store) nextSnapshot(
	ctx context.Context, l deployments.Leased, sequence int, next func(Snapshot) ([]byte, error),
) error {
	stack, err := s.stacks.Of(ctx, l.Update.StackName)
	if err != nil {
		return err
	}
	key, lease := snapshotKey(l.Update), writtenLease{l.Update, l.Fence}
	for {
		if err := s.takeSnapshot(ctx, lease); err != nil {
			return err
		}
		last, err := s.lastSnapshot(ctx, l.Update)
		if err != nil {
			return err
		}
		if sequence != 0 && sequence <= last.Sequence {
			return s.holdsLease(ctx, lease) // a repeated write
		}
		deployment, err := next(last)
		last.deployment = nil // so that it is not in memory beside the next one
		if err != nil {
			return err
		}
		if err := s.of.Judge(ctx, l.Update.StackName, deployment); err != nil {
			return err
		}
		line, err := json.Marshal(Snapshot{Sequence: max(sequence, last.Sequence+1), Digest: hexOf(deployment)})
		if err != nil {
			return err
		}
		sealed := stack.Box.SealParts(stackobjects.Context(l.Update.StackName, key), line, []byte("\n"), deployment)
		_, err = s.stacks.Sealed.Objects.Put(ctx, key, sealed, bucket.Condition{Tag: last.tag, Absent: last.tag == ""})
		if errors.Is(err, bucket.ErrChanged) {
			s.snapshots.Remove(lease)
			continue
		}
		if err != nil {
			return bucket.Failed(err, "write "+key)
		}
		s.snapshots.Add(lease, int64(len(deployment)))
		return s.holdsLease(ctx, lease)
	}
}

// snapshotTimes is how many copies of the last deployment there are while the next one is made of it.
const snapshotTimes = 3

// takeSnapshot takes the memory of the last deployment of a lease. Its size is known here if this process has written
// it; else it may be as large as any.
func (s *Store) takeSnapshot(ctx context.Context, l writtenLease) error {
	size, known := s.snapshots.Get(l)
	if !known {
		if _, err := s.stacks.Sealed.Objects.Tag(ctx, snapshotKey(l.update)); err == nil {
			size = deployments.MaxClientState
		}
	}
	return mempool.Take(ctx, snapshotTimes*size)
}

// edit applies edits, which are sorted and refer to the text before all of them.
func edit(text []byte, edits []deployments.TextEdit) ([]byte, error) {
	size := len(text)
	for _, e := range edits {
		size += len(e.Text)
	}
	heap.Room(int64(size))
	out := make([]byte, 0, size)
	at := 0
	for _, e := range edits {
		if e.From < at || e.To < e.From || e.To > len(text) {
			return nil, errors.New("an edit is outside of the text")
		}
		out = append(append(out, text[at:e.From]...), e.Text...)
		at = e.To
	}
	return append(out, text[at:]...), nil
}

func changesKey(u deployments.UpdateName) string {
	return stackobjects.UpdateKey(u, SnapshotFolder, "changes")
}

// PutLeaseChanges stores how many steps of each kind a client says that it has made.
func (s *Store) PutLeaseChanges(ctx context.Context, u deployments.UpdateName, changes map[string]int) error {
	return s.stacks.PutJSON(ctx, u.StackName, changesKey(u), changes)
}

// LeaseChanges returns what PutLeaseChanges stored; nil when there is nothing.
func (s *Store) LeaseChanges(ctx context.Context, u deployments.UpdateName) (changes map[string]int, err error) {
	if _, err = s.stacks.GetJSON(ctx, u.StackName, changesKey(u), &changes); errors.Is(err, bucket.ErrAbsent) {
		err = nil
	}
	return changes, err
}

func rejectedKey(u deployments.UpdateName) string {
	return stackobjects.UpdateKey(u, SnapshotFolder, "rejected")
}

// Reject stores why what a client wrote is not in the state, or not all of it.
func (s *Store) Reject(ctx context.Context, u deployments.UpdateName, why error) error {
	return s.stacks.PutJSON(ctx, u.StackName, rejectedKey(u), why.Error())
}

// Rejected returns, as CodeInvalid, the error that Reject has stored; nil when there is none.
func (s *Store) Rejected(ctx context.Context, u deployments.UpdateName) error {
	var message string
	_, err := s.stacks.GetJSON(ctx, u.StackName, rejectedKey(u), &message)
	if errors.Is(err, bucket.ErrAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	return deployments.Errorf(deployments.CodeInvalid, "%s", message)
}

func hexOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
