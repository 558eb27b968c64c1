package pulumiapi

import (
	"encoding/json"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/pack"
	"github.com/deployctl/deployctl/internal/values/rawjson"
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
	var err error
	if r.Deployment, err = c.change(&r, "deployment"); err != nil {
		return nil, err
	}
	if r.IsInvalid {
		return nil, nil // the CLI says that the stored one is outdated, which it is until it writes the next
	}
	parts, err := rawjson.With(apitype.UntypedDeployment{Version: r.Version, Features: r.Features}, "deployment",
		r.Deployment)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment is no JSON: %w", err)
	}
	return nil, c.edge.Service.WriteSnapshot(c.Context(), c.lease, 0, pack.Whole(parts))
}

// change rejects a write of a preview, and parses the body of any other around its member of a name.
func (c *call) change(v any, name string) (json.RawMessage, error) {
	if c.lease.Preview() {
		return nil, deployments.Errorf(deployments.CodeForbidden, "a preview writes no state")
	}
	return c.parseAround(v, name)
}

// writeVerbatim stores a whole deployment, byte by byte: later changes refer to these.
func writeVerbatim(c *call) (any, error) {
	var r apitype.PatchUpdateVerbatimCheckpointRequest
	var err error
	if r.UntypedDeployment, err = c.change(&r, "untypedDeployment"); err != nil {
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

// mostEdits limits the edits of one change. A client that has more of them writes the whole deployment.
const mostEdits = 100_000

// writeDelta changes the last deployment.
func writeDelta(c *call) (any, error) {
	var r apitype.PatchUpdateCheckpointDeltaRequest
	delta, err := c.change(&r, "deploymentDelta")
	if err != nil {
		return nil, err
	}
	if !rawjson.IsArray(delta) || r.SequenceNumber < 1 {
		return nil, errDelta
	}
	patch := deployments.SnapshotPatch{Sequence: r.SequenceNumber, Digest: r.CheckpointHash}
	for raw := range rawjson.Elements(delta) {
		var e textEdit
		if json.Unmarshal(raw, &e) != nil {
			return nil, errDelta
		}
		if len(patch.Edits) == mostEdits {
			return nil, deployments.TooLarge("one change has more than %d edits: write the whole deployment", mostEdits)
		}
		patch.Edits = append(patch.Edits, deployments.TextEdit{From: e.Span.Start.Offset, To: e.Span.End.Offset,
			Text: e.NewText})
	}
	return nil, c.edge.Service.PatchSnapshot(c.Context(), c.lease, patch)
}

var errDelta = deployments.Errorf(deployments.CodeInvalid, "the changes of the deployment, or their sequence number, "+
	"cannot be read")

// writeJournal stores journal entries. A step of the CLI waits for the answer.
func writeJournal(c *call) (any, error) {
	entries, err := c.change(&struct{}{}, "entries")
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return nil, c.edge.Service.WriteJournal(c.Context(), c.lease, entries)
}

// writeEvents stores engine events.
func writeEvents(c *call) (any, error) {
	events, err := c.parseAround(&struct{}{}, "events")
	if err != nil || len(events) == 0 {
		return nil, err
	}
	return nil, c.edge.Service.WriteEvents(c.Context(), c.lease, events)
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
