package deployments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// LeaseDuration is how long a lease lasts after each renewal. The stock CLI renews after half of it.
	LeaseDuration = 5 * time.Minute
	// LeaseNotStarted is how long an update that a client executes may take from its creation to its start.
	LeaseNotStarted = time.Hour
	// LeasePatience is how long the start of such an update waits for a busy stack.
	LeasePatience = 30 * time.Minute
	// LeaseLife is how long after its creation such an update ends at the latest, however often its lease is renewed.
	LeaseLife = 24 * time.Hour
)

// What the client of one update may write. The stock CLI writes four to six journal entries and a few events for a
// resource.
const (
	MaxJournalEntries = 500_000
	MaxJournalBytes   = 512 << 20
	// MaxJournalReferences limits those of all entries: a resource is in up to five of them.
	MaxJournalReferences = 5 * MaxClientReferences
	MaxClientEvents      = 1_000_000
	MaxClientEventBytes  = 512 << 20
	// MaxBatch limits the journal entries, and the events, of one call.
	MaxBatch = 10_000
	// MaxClientState limits the state, as JSON, and MaxClientResources its resources.
	MaxClientState     = 128 << 20
	MaxClientResources = 100_000
	// MaxClientReferences limits the elements of all lists in the headers of a state's resources, nearly all of which are
	// references to other resources: ten for each of as many resources as there may be. As text they are short, and in
	// memory they are not.
	MaxClientReferences = 1_000_000
	// MaxValueMemory limits what the values of one resource of a state that is written, and of all that is no resource,
	// become in memory: some texts become a hundred times as large.
	MaxValueMemory = 64 << 20
	// MaxImportResources limits the resources of an imported deployment.
	MaxImportResources = 250_000
)

// ErrTooLarge is the cause of an error about more than a client may write.
var ErrTooLarge = errors.New("too much is written")

// TooLarge returns an error of CodeInvalid whose cause is ErrTooLarge.
func TooLarge(format string, args ...any) error {
	return &Error{Code: CodeInvalid, Message: fmt.Sprintf(format, args...), Err: ErrTooLarge}
}

// ValidateReferences reports that the resources of what a client writes have more than MaxClientReferences.
func ValidateReferences(n int) error {
	if n <= MaxClientReferences {
		return nil
	}
	return TooLarge("its resources have %d references to others (dependencies, propertyDependencies, aliases and the "+
		"like), and at most %d are possible: have resources depend on fewer others, or divide the stack", n,
		MaxClientReferences)
}

// Lease makes an UpdateRequest one that its client executes itself: the stock CLI. The service keeps the stack for it
// while the client renews the lease, and stores the state that the client writes.
type Lease struct {
	// Duration is how long the lease lasts after its start and after each renewal.
	Duration time.Duration `json:"duration"`
	// Metadata is what the client says about where it runs, such as the commit of the program.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Names of the workflow of a lease, its updates and its activities, as they stand in recorded histories.
const (
	WorkflowLease = "Lease" // UpdateInput → UpdateInfo; its id is that of the update's workflow

	UpdateRenew    = "renew"    // time.Duration → time.Time, when the lease ends unless it is renewed again
	UpdateComplete = "complete" // engine.Status → UpdateInfo, once the state is committed

	ActivityBeginLease = "BeginLease" // UpdateInput → nothing: claims the stack
	ActivityEndLease   = "EndLease"   // LeaseEnd → LeaseEnded: commits what the client has written
)

// LeaseEnd ends an update that its client executes. A repeated end has no effect.
type LeaseEnd struct {
	Update UpdateName    `json:"update"`
	Status engine.Status `json:"status"`
	Error  string        `json:"error,omitempty"`
}

// LeaseEnded is how an update that its client executed has ended.
type LeaseEnded struct {
	UpdateInfo
	// Settle asks for an update that settles what the client began and did not end; nil when nothing is to be settled, or
	// the service cannot.
	Settle *UpdateRequest `json:"settle,omitempty"`
}

// Leased is a lease that has begun.
type Leased struct {
	Update UpdateName `json:"update"`
	// ID is the id that the client knows the update by.
	ID string `json:"id"`
	// Fence is that of the update's claim; 0 for a preview, which claims nothing.
	Fence int `json:"fence,omitempty"`
	// Expires is when the lease ends unless it is renewed.
	Expires time.Time `json:"expires"`
	// Last is when the lease ends even if it is renewed.
	Last time.Time `json:"last"`
	// StackID is the identity of the stack; empty in leases of earlier releases.
	StackID string `json:"stackID,omitempty"`
	// Caller is the token that started it: the lease is renewed as long as that may deploy to the stack.
	Caller Holder `json:"caller"`
	// Tags are those that the stack had when the update got it. A token does not have them.
	Tags map[string]string `json:"-"`
}

// Preview reports whether the lease is of a preview, which changes nothing.
func (l Leased) Preview() bool { return l.Update.Number() == 0 }

// Created returns when the client created the update.
func (l Leased) Created() time.Time { return l.Last.Add(-LeaseLife) }

// CreatedUpdate is an update that a client has created and executes itself.
type CreatedUpdate struct {
	ID      string        `json:"id"`
	Request UpdateRequest `json:"request"`
	Created time.Time     `json:"created"`
	// Version is the version of the stack that the update makes, once it was started; 0 before, and for a preview.
	Version int `json:"version,omitempty"`
}

// Name returns the name of the update: by its version, or, for a preview and before it was started, by its id.
func (c CreatedUpdate) Name() UpdateName {
	if c.Version > 0 {
		return UpdateName{c.Request.Stack, strconv.Itoa(c.Version)}
	}
	return CreatedName(c.Request.Stack, c.ID)
}

// CreatedName names what is stored of a created update by its id.
func CreatedName(s StackName, id string) UpdateName { return UpdateName{s, previewPrefix + id} }

// StartRequest starts an update that its client executes itself.
type StartRequest struct {
	Stack StackName
	ID    string
	By    Holder
	// Patience, if set, returns how long it waits while another update has the stack, or no worker takes it up. It is
	// called once, when that is known of what is to start.
	Patience func() time.Duration
	// NoWorker, if set, is called with each error of CodeNoWorker that it waits out.
	NoWorker func(err error)
}

// Leases are the updates that clients execute themselves. All errors are *Error.
type Leases interface {
	// CreateUpdate stores a request and returns its id. It takes nothing: the update gets its place in the stack's queue
	// when it is started.
	CreateUpdate(ctx context.Context, r UpdateRequest) (id string, err error)
	// CreatedUpdate returns what CreateUpdate has stored; CodeNotFound when there is no such update.
	CreatedUpdate(ctx context.Context, s StackName, id string) (CreatedUpdate, error)
	// StartUpdate waits until the update has the stack, and returns its lease. A preview waits for nothing.
	// A repeated start returns the same lease. CodeNotFound: there is no such update of this caller, or it was created too
	// long ago.
	// CodeConflict: the update was cancelled while it waited, or the stack stays busy.
	StartUpdate(ctx context.Context, r StartRequest) (Leased, error)
	// RenewLease returns the lease with a later end. CodeForbidden: the update has ended, LeaseLife is over, or whoever
	// started it may not deploy to the stack any more.
	RenewLease(ctx context.Context, l Leased, d time.Duration) (Leased, error)
	// CompleteUpdate commits the state that the client has written, and ends the update. CodeConflict: it has ended
	// with another status.
	CompleteUpdate(ctx context.Context, l Leased, status engine.Status) (UpdateInfo, error)
}

// LeaseTokens make the texts by which clients prove that they have a lease.
type LeaseTokens interface {
	// LeaseToken returns the text of a lease.
	LeaseToken(l Leased) string
	// LeaseOf returns the lease of a text; CodeUnauthorized when the service did not make it, CodeForbidden when it has
	// expired.
	LeaseOf(text string) (Leased, error)
}

// LeasedState takes what clients write while they have a lease. Each method fails with CodeForbidden when the update
// has lost the stack; what it has written then is never read. Writing the same again has no effect.
type LeasedState interface {
	// WriteJournal stores journal entries, which are the elements of a JSON array. What is repeated counts once.
	// CodeInvalid: one cannot become part of the state; with the cause ErrTooLarge also: there are too many.
	WriteJournal(ctx context.Context, l Leased, entries json.RawMessage) error
	// WriteSnapshot stores a whole deployment, as JSON of apitype.UntypedDeployment. sequence numbers the snapshots of
	// the update from 1; 0 stands for the next one.
	WriteSnapshot(ctx context.Context, l Leased, sequence int, deployment []byte) error
	// PatchSnapshot stores the deployment that edits make of the last one. CodeConflict: the result does not have the
	// digest (SHA-256, hexadecimal), so the client must send the whole.
	PatchSnapshot(ctx context.Context, l Leased, p SnapshotPatch) error
	// WriteEvents stores engine events, which are the elements of a JSON array. CodeInvalid: one is none, or, with the
	// cause ErrTooLarge, there are too many. CodeForbidden: the update has ended.
	WriteEvents(ctx context.Context, l Leased, events json.RawMessage) error
	// EventsAfter returns the next events of an update, whoever executes it, after a position, and the position after
	// them. No event is returned twice or left out, in whatever order a client's batches arrive; those of one answer are
	// in order. The position stays the same when there is nothing new.
	EventsAfter(ctx context.Context, u UpdateName, after EventPosition) ([]apitype.EngineEvent, EventPosition, error)
}

// EventPosition is how far a follower has read the events of an update; the zero value is the beginning.
type EventPosition struct {
	// Parts is how many parts were read, by stream of the log of an update that the service executes.
	Parts map[string]int `json:"parts,omitempty"`
	// Ranges are the sequence numbers that were read of a client's events, each from its first to its last number; they
	// are sorted and neither touch nor overlap.
	Ranges [][2]int `json:"ranges,omitempty"`
}

// Equal reports whether two positions are the same.
func (p EventPosition) Equal(other EventPosition) bool {
	return maps.Equal(p.Parts, other.Parts) && slices.Equal(p.Ranges, other.Ranges)
}

// SnapshotPatch turns a deployment into the next one.
type SnapshotPatch struct {
	Sequence int
	Digest   string
	Edits    []TextEdit
}

// TextEdit replaces the bytes from From up to To.
type TextEdit struct {
	From, To int
	Text     string
}
