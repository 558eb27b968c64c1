package pulumiapi

import (
	"encoding/json"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/journal"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// renewLease sets the end of the lease later, and answers with a new token: the CLI uses that from then on.
func renewLease(c *call) (any, error) {
	var r apitype.RenewUpdateLeaseRequest
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	l, err := c.edge.Service.RenewLease(c.Context(), c.lease, time.Duration(r.Duration)*time.Second)
	if err != nil {
		return nil, err
	}
	return apitype.RenewUpdateLeaseResponse{Token: c.edge.Service.LeaseToken(l), TokenExpiration: l.Expires.Unix()}, nil
}

// writeCheckpoint stores a whole deployment.
func writeCheckpoint(c *call) (any, error) {
	var r apitype.PatchUpdateCheckpointRequest
	if err := c.change(&r); err != nil {
		return nil, err
	}
	if r.IsInvalid {
		return nil, nil // the CLI says that the stored one is outdated, which it is until it writes the next
	}
	deployment, err := json.Marshal(apitype.UntypedDeployment{Version: r.Version, Features: r.Features,
		Deployment: r.Deployment})
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment is no JSON: %w", err)
	}
	return nil, c.edge.Service.WriteSnapshot(c.Context(), c.lease, 0, deployment)
}

// change rejects a write of a preview, and parses the body of any other.
func (c *call) change(v any) error {
	if c.lease.Preview() {
		return deployments.Errorf(deployments.CodeForbidden, "a preview writes no state")
	}
	return c.parse(v)
}

// writeVerbatim stores a whole deployment, byte by byte: later changes refer to these.
func writeVerbatim(c *call) (any, error) {
	var r apitype.PatchUpdateVerbatimCheckpointRequest
	if err := c.change(&r); err != nil {
		return nil, err
	}
	if r.SequenceNumber < 1 || len(r.UntypedDeployment) == 0 {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment or its sequence number is missing")
	}
	return nil, c.edge.Service.WriteSnapshot(c.Context(), c.lease, r.SequenceNumber, r.UntypedDeployment)
}

// textEdit is one edit of a deployment as the CLI writes it.
type textEdit struct {
	Span struct {
		Start, End struct {
			Offset int `json:"offset"`
		}
	}
	NewText string
}

// writeDelta changes the last deployment.
func writeDelta(c *call) (any, error) {
	var r apitype.PatchUpdateCheckpointDeltaRequest
	if err := c.change(&r); err != nil {
		return nil, err
	}
	var edits []textEdit
	if err := json.Unmarshal(r.DeploymentDelta, &edits); err != nil || r.SequenceNumber < 1 {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the changes of the deployment, or their sequence number, "+
			"cannot be read")
	}
	patch := deployments.SnapshotPatch{Sequence: r.SequenceNumber, Digest: r.CheckpointHash}
	for _, e := range edits {
		patch.Edits = append(patch.Edits, deployments.TextEdit{From: e.Span.Start.Offset, To: e.Span.End.Offset,
			Text: e.NewText})
	}
	return nil, c.edge.Service.PatchSnapshot(c.Context(), c.lease, patch)
}

// writeJournal stores journal entries. A step of the CLI waits for the answer.
func writeJournal(c *call) (any, error) {
	var r struct {
		Entries json.RawMessage `json:"entries"`
	}
	if err := c.change(&r); err != nil || len(r.Entries) == 0 {
		return nil, err
	}
	entries, err := journal.Parse(r.Entries)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	for _, e := range entries {
		if e.Sequence < 0 {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%d is not the number of a journal entry", e.Sequence)
		}
	}
	return nil, c.edge.Service.WriteJournal(c.Context(), c.lease, r.Entries)
}

// writeEvents stores engine events.
func writeEvents(c *call) (any, error) {
	var r apitype.EngineEventBatch
	if err := c.parse(&r); err != nil || len(r.Events) == 0 {
		return nil, err
	}
	first := r.Events[0].Sequence
	for _, e := range r.Events {
		first = min(first, e.Sequence)
	}
	if first < 0 {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%d is not the number of an event", first)
	}
	return nil, c.edge.Service.WriteEvents(c.Context(), c.lease, first, r.Events)
}

// ends are the statuses with which a client completes an update.
var ends = map[apitype.UpdateStatus]engine.Status{
	apitype.UpdateStatusSucceeded: engine.StatusSucceeded, apitype.UpdateStatusFailed: engine.StatusFailed,
	apitype.UpdateStatusCancelled: engine.StatusCancelled,
}

// completeUpdate commits what was written, and ends the update.
func completeUpdate(c *call) (any, error) {
	var r apitype.CompleteUpdateRequest
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	status, ok := ends[r.Status]
	if !ok {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%q is not how an update ends", clean(string(r.Status)))
	}
	c.entry.Subject += " status=" + string(status)
	_, err := c.edge.Service.CompleteUpdate(c.Context(), c.lease, status)
	return nil, err
}
