package statestore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/deployctl/deployctl/statestore/updates"
)

// Claim is the right to move a stack's head, until a later claim of the stack. It can be passed on as JSON.
type Claim struct {
	Update deployments.UpdateName `json:"update"`
	// Writer identifies the claimant: a repeated claim by the same writer has the same result.
	Writer string `json:"writer"`
	Fence  int    `json:"fence"`
	// Base is the version that the stack had.
	Base int `json:"base"`
	// Next is the next version of the stack before this claim; 0 when the stack had been claimed already.
	Next int `json:"-"`
}

// exchanging is the start of the writers of imports and restores. No worker's name is empty, so no worker's writer
// starts with "#".
const exchanging = "#import-"

// WithoutRequest reports whether the claim is of an import or a restore, which have no request.
func (a *Active) WithoutRequest() bool { return strings.HasPrefix(a.Writer, exchanging) }

// Claimant describes who claims a stack, and for which update.
type Claimant struct {
	Update    deployments.UpdateName
	RequestID string
	// StackID, if not empty, is the identity of the stack for which the update was asked for: Head.ID.
	StackID string
	// Run is the workflow run that executes the update; empty when none does.
	Run string
	// Writer is unique to the claiming worker and attempt, such as the worker's name and the number of the claim.
	Writer string
	// Unclaimed requires a version that nobody has claimed. Otherwise the claim replaces that of an earlier writer of
	// the update.
	Unclaimed bool
}

// Claim makes the claimant the only writer of the stack. If the update is active already, its earlier writer loses the
// stack. CodeConflict: another update is active, or this one had the stack before, also in an earlier stack of the
// name; it is for such a stack, or another workflow run executes it; or its request was another update's. CodeFormat:
// the head is older than what the stack has.
//
// Invariant: a version is claimed by one workflow run and, once that has lost the stack, by nobody. Versions of a name
// only grow (see tombstone), so nothing that once was an update can be one again.
func (s *Store) Claim(ctx context.Context, c Claimant) (Claim, error) {
	number := c.Update.Number()
	if number == 0 || c.Writer == "" {
		return Claim{}, deployments.Errorf(deployments.CodeInvalid,
			"%s cannot claim its stack: only numbered updates change one", c.Update)
	}
	next := 0
	h, err := s.changeHead(ctx, c.Update.StackName, func(h *Head) (bool, error) {
		next = 0
		switch {
		case c.StackID != "" && c.StackID != h.ID:
			return false, deployments.Errorf(deployments.CodeConflict, "update %s was asked for when another stack had this "+
				"name: it does not begin", c.Update)
		case h.Active != nil && h.Active.Version == c.Update.Version && h.Active.Run != c.Run:
			return false, deployments.Errorf(deployments.CodeConflict, "another run of its workflow executes update %s",
				c.Update)
		case h.Active != nil && h.Active.Version == c.Update.Version && h.Active.Writer == c.Writer:
			return false, nil
		case h.Active != nil && (h.Active.Version != c.Update.Version || c.Unclaimed):
			return false, busy(c.Update.StackName, h.Active)
		case c.Unclaimed && h.Next > number:
			return false, deployments.Errorf(deployments.CodeConflict,
				"version %d of the stack was given to another update meanwhile: do it again", number)
		case h.Version >= number:
			return false, deployments.Errorf(deployments.CodeConflict,
				"the stack is at version %d already; update %s is over", h.Version, c.Update)
		case h.Active == nil && h.Next > number:
			return false, deployments.Errorf(deployments.CodeConflict,
				"the stack has given out version %d; update %s is over", h.Next-1, c.Update)
		}
		if h.Active == nil {
			if err := s.current(ctx, c.Update.StackName, *h, number); err != nil {
				return false, err
			}
		}
		if was := h.versionOf(c.RequestID); was != 0 && was != number {
			return false, deployments.Errorf(deployments.CodeConflict, "what update %s asks for is update %d already",
				c.Update, was)
		}
		next = h.Next
		h.Fence++
		h.Active = &Active{Version: c.Update.Version, RequestID: c.RequestID, Writer: c.Writer, Run: c.Run,
			Since: s.now().UTC(), EverySave: h.Active == nil || h.Active.EverySave}
		h.Next = max(h.Next, number+1)
		h.addRequest(c.RequestID, number, s.now())
		return true, nil
	})
	return Claim{Update: c.Update, Writer: c.Writer, Fence: h.Fence, Base: h.Version, Next: next}, err
}

// Commit ends the claim's update, moves the head to the checkpoint w, and releases the claim; with a zero Written the
// version stays. A repeated Commit has no effect. CodeConflict: the claim was lost, and nothing was changed.
func (s *Store) Commit(ctx context.Context, c Claim, w Written) error {
	_, err := s.changeKnownHead(ctx, c.Update.StackName, claimKnownFor, func(h *Head) (bool, error) {
		if h.Active == nil || h.Active.Version != c.Update.Version || h.Active.Writer != c.Writer ||
			h.Fence != c.Fence {
			if w.Version != 0 && h.Version == w.Version && h.Digest == w.Digest {
				return false, nil
			}
			if w.Version == 0 && (h.Active == nil || h.Active.Version != c.Update.Version) {
				return false, nil
			}
			return false, claimLost(c)
		}
		h.Active = nil
		h.moveTo(w, s.now())
		return true, nil
	})
	return err
}

// Sweep removes what only recovery would need of a committed update: its deltas with their large values, and the
// outcomes that lost attempts left. A recovery that has read some of it cannot write its result, because the update has
// lost the stack. What cannot be removed now is left to Collect, and so are journals: their ends refuse late writes.
func (s *Store) Sweep(ctx context.Context, name deployments.StackName, version int) {
	u := deployments.UpdateName{StackName: name, Version: strconv.Itoa(version)}
	if s.swept.Remove(u) {
		return
	}
	there, err := s.workingFolders(ctx, u)
	if err != nil {
		return
	}
	for _, folder := range there {
		l, err := s.objects.List(ctx, bucket.Query{Prefix: folder})
		if err != nil {
			return
		}
		_ = bucket.Each(l.Keys, func(key string) error { return s.objects.Delete(ctx, key) })
	}
}

// workingFolders returns the folders of an update that only its recovery would need, those that there are.
func (s *Store) workingFolders(ctx context.Context, u deployments.UpdateName) ([]string, error) {
	prefix := stackobjects.UpdateKey(u, "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: prefix, Fold: true})
	var there []string
	for _, part := range []string{"delta", "outcome", updates.SpillFolder, blobFolder, leases.SnapshotFolder} {
		if folder := stackobjects.UpdateKey(u, part, ""); slices.Contains(l.Keys, folder) {
			there = append(there, folder)
		}
	}
	return there, bucket.Failed(err, "list "+prefix)
}

// Holds reports, as CodeConflict, that the claim was lost.
func (s *Store) Holds(ctx context.Context, c Claim) error {
	h, err := s.Head(ctx, c.Update.StackName)
	if err != nil {
		return err
	}
	if h.Active == nil || h.Active.Version != c.Update.Version || h.Active.Writer != c.Writer || h.Fence != c.Fence {
		return claimLost(c)
	}
	return nil
}

// holdsLease is Holds of the claim of a lease.
func (s *Store) holdsLease(ctx context.Context, u deployments.UpdateName, fence int) error {
	return s.Holds(ctx, Claim{Update: u, Writer: leases.Writer, Fence: fence})
}

// ClaimOf returns the current claim of an update, for a process that ends the update without having claimed it.
func (s *Store) ClaimOf(ctx context.Context, u deployments.UpdateName) (Claim, error) {
	h, err := s.Head(ctx, u.StackName)
	if err != nil {
		return Claim{}, err
	}
	return h.claimOf(u)
}

func (h *Head) claimOf(u deployments.UpdateName) (Claim, error) {
	c := Claim{Update: u, Fence: h.Fence, Base: h.Version}
	if h.Active == nil || h.Active.Version != u.Version {
		return c, claimLost(c)
	}
	c.Writer = h.Active.Writer
	return c, nil
}

// versionOf returns the version that a request was given; 0 when that is not known.
func (h *Head) versionOf(requestID string) int {
	for _, r := range h.Requests {
		if r.ID == requestID {
			return r.Version
		}
	}
	return 0
}

func (h *Head) addRequest(requestID string, version int, now time.Time) {
	if requestID == "" || h.versionOf(requestID) != 0 {
		return
	}
	h.Requests = append(h.Requests, RequestVersion{requestID, version, now.UTC()})
	old := 0
	for old < len(h.Requests)-keptRequests && now.Sub(h.Requests[old].At) > keptRequestsFor {
		old++
	}
	h.Requests = h.Requests[old:]
}

func (h *Head) moveTo(w Written, now time.Time) {
	if w.Version == 0 {
		return
	}
	h.Version, h.Digest, h.Updated = w.Version, w.Digest, now.UTC()
	h.Resources, h.Pending = w.Resources, w.Pending
	h.Next = max(h.Next, w.Version+1)
	h.addState(w.Version)
}

func busy(name deployments.StackName, a *Active) error {
	if a.Version == removal {
		return deployments.Errorf(deployments.CodeConflict, "the stack %s is being removed or renamed; if that was "+
			"interrupted, do it again", name)
	}
	return deployments.Errorf(deployments.CodeConflict, "update %s/%s has the stack since %s: wait for it, or end it "+
		"with `deployctl cancel`",
		name, a.Version, a.Since.Format("2006-01-02 15:04:05 MST"))
}

func claimLost(c Claim) error {
	return deployments.Errorf(deployments.CodeConflict, "update %s has lost its stack to another worker or update; "+
		"this worker stops writing", c.Update)
}

// WriterOf returns the name of a claim's writer: the worker and the number of the claim.
func WriterOf(worker string, epoch string) string { return worker + "#" + epoch }

// HostOf returns the task queue of the worker that made a claim, from the claim's writer.
func HostOf(writer string) string {
	worker, _, _ := strings.Cut(writer, "#")
	return worker
}
