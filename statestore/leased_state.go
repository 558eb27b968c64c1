package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/journal"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// FinishLease commits what the client of an update has written: the journal, or else the last whole deployment. Without
// either the stack keeps its version. CodeInvalid: it cannot be a state from some point on; what is before that is
// committed. From its begin on nothing is accepted from the client. A repeated FinishLease has no effect and the same
// answer. The state says that it was written by this version of the client, which a journal does not say; empty means
// that it is not known.
func (s *Store) FinishLease(ctx context.Context, u deployments.UpdateName, client string) (Written, error) {
	// A head that was just read does, if the claim finds it still there.
	if h, _, known := s.knownHead(u.StackName, headKnownFor); known && h.Active != nil && h.Active.Version == u.Version {
		w, err := s.finishLease(ctx, u, h, client)
		if deployments.CodeOf(err) != deployments.CodeConflict {
			return w, err
		}
	}
	h, err := s.Head(ctx, u.StackName)
	if err != nil {
		return Written{}, err
	}
	return s.finishLease(ctx, u, h, client)
}

// finishLease is FinishLease by a head.
func (s *Store) finishLease(
	ctx context.Context, u deployments.UpdateName, h Head, client string,
) (Written, error) {
	switch {
	case h.Version == u.Number():
		return h.written(), s.Leases.Rejected(ctx, u)
	case h.Active == nil || h.Active.Version != u.Version: // it has ended without a version, or never began
		return Written{Resources: h.Resources}, s.Leases.Rejected(ctx, u)
	}
	claim, err := s.Claim(ctx, Claimant{Update: u, RequestID: h.Active.RequestID, Run: h.Active.Run,
		Writer: leases.EndWriter})
	if err != nil {
		return Written{}, err
	}
	w := Written{Resources: h.Resources, Base: claim.Base}
	d, rejected := s.leasedState(ctx, claim, client)
	if rejected != nil {
		if deployments.CodeOf(rejected) != deployments.CodeInvalid {
			return w, rejected
		}
		if err := s.Leases.Reject(ctx, u, rejected); err != nil {
			return w, err
		}
	}
	if d == nil {
		return w, errors.Join(s.Commit(ctx, claim, Written{}), rejected)
	}
	if w, err = s.write(ctx, claim, d); err != nil {
		return w, err
	}
	w.Base = claim.Base
	return w, errors.Join(s.Commit(ctx, claim, w), rejected)
}

// leasedState returns the state that a client has written; nil when there is none. What cannot be a state is the
// client's fault (CodeInvalid), even if it makes this service panic: otherwise the stack would never be free again.
// With that error it returns the state before, if there is one.
func (s *Store) leasedState(ctx context.Context, c Claim, client string) (d *draft, err error) {
	err = panics.Do("reading what the client of update "+c.Update.String()+" wrote", func() error {
		d, err = s.readLeased(ctx, c, client)
		return err
	})
	if defect := (*panics.PanicError)(nil); errors.As(err, &defect) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%w", defect)
	}
	return d, err
}

func (s *Store) readLeased(ctx context.Context, c Claim, client string) (*draft, error) {
	written, err := s.Leases.End(ctx, c.Update)
	if err != nil {
		return nil, err
	}
	if written.Last > 0 {
		return s.replayed(ctx, c, written, client)
	}
	last, found, err := s.Leases.Last(ctx, c.Update)
	if err != nil || !found {
		return nil, err
	}
	if err := mempool.Take(ctx, packTimes*int64(len(last))); err != nil {
		return nil, err
	}
	f, err := parseFile(ctx, deploymentText{around: last}, false)
	if bucket.Interrupted(err) {
		return nil, err
	}
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment cannot be read: %w", err)
	}
	return s.clientDraft(ctx, c.Update.StackName, f)
}

// clientVersion is the form of the version of a client.
var clientVersion = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]{0,64}$`)

// packTimes is how much memory is used to write a state, in times its text; see pack.Zstd.
const packTimes = 2

// replayed returns the state that a journal makes of the base of an update.
func (s *Store) replayed(ctx context.Context, c Claim, written *leases.Journal, client string) (*draft, error) {
	var f deploymentFile
	var base journal.State
	largest := deployments.MaxClientState
	if c.Base > 0 {
		data, err := s.checkpointJSON(ctx, c.Update.StackName, c.Base)
		if err != nil {
			return nil, err
		}
		largest = max(largest, len(data))
		if f, base, err = partsOf(ctx, data); err != nil {
			return nil, bucket.Damaged(checkpointKey(c.Update.StackName, c.Base), err)
		}
	}
	replay := journal.NewReplay(base)
	before := replay.Size()
	most := max(deployments.MaxClientResources, before.Resources)
	mostReferences := max(deployments.MaxClientReferences, before.References)
	var rejected error
	grown := before.Bytes + written.Room // what was taken: the base has its own memory
	for e, err := range written.Entries(ctx) {
		if err == nil {
			if err = replay.Add(e); err != nil {
				err = deployments.Errorf(deployments.CodeInvalid, "%w", err)
			}
		}
		size := replay.Size()
		if err == nil && (size.Bytes > largest || size.Resources > most || size.References > mostReferences) {
			err = deployments.TooLarge("after journal entry %d the state is larger than a client may write: at most %d "+
				"resources, of %d MiB together, with %d references; divide the stack", e.Sequence, most, largest>>20,
				mostReferences)
		}
		if err == nil && size.Bytes > grown {
			err = mempool.Take(ctx, leases.ReplayTimes*int64(size.Bytes-grown+mempool.Step))
			grown = size.Bytes + mempool.Step
		}
		if err != nil && deployments.CodeOf(err) != deployments.CodeInvalid {
			return nil, err
		}
		if err != nil {
			rejected = deployments.Errorf(deployments.CodeInvalid, "the journal of update %s cannot be replayed to its end: "+
				"%w", c.Update, err)
			break
		}
	}
	written.Forget()
	state, err := replay.State()
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the journal of update %s cannot be replayed: %w", c.Update,
			err)
	}
	f.Deployment.Manifest = s.manifest(&Checkpoint{file: f})
	if clientVersion.MatchString(client) {
		f.Deployment.Manifest.Version = client
		f.Deployment.Manifest.Magic = f.Deployment.Manifest.NewMagic()
	}
	d, err := s.replayedDraft(ctx, c, f, state)
	return d, errors.Join(rejected, err)
}

// replayedDraft returns a draft of a state that a journal has made.
func (s *Store) replayedDraft(ctx context.Context, c Claim, f deploymentFile, state journal.State) (*draft, error) {
	f.Deployment.Resources, f.Deployment.Snippets = state.Resources, state.Snippets
	f.Deployment.SecretsProviders, f.Deployment.PendingOperations = state.Secrets, nil
	if f.Features = nil; state.ByteStrings {
		f.Features = []string{featureByteString}
	}
	f.Deployment.Extensions = state.Extensions
	for _, raw := range state.Pending {
		var operation storedOperation
		if err := rawjson.Unmarshal(raw, &operation); err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "a pending operation: %w", err)
		}
		f.Deployment.PendingOperations = append(f.Deployment.PendingOperations, operation)
	}
	return s.clientDraft(ctx, c.Update.StackName, f)
}

// partsOf returns the parts of a stored deployment that a journal can change.
func partsOf(ctx context.Context, data []byte) (deploymentFile, journal.State, error) {
	f, err := takeApart(ctx, deploymentText{around: data}, false)
	state := journal.State{
		Secrets: f.Deployment.SecretsProviders, Resources: f.Deployment.Resources, Snippets: f.Deployment.Snippets,
		Extensions: f.Deployment.Extensions, ByteStrings: slices.Contains(f.Features, featureByteString),
	}
	for raw := range rawjson.Elements(rawjson.Member(rawjson.Member(data, "deployment"), "pending_operations")) {
		state.Pending = append(state.Pending, raw)
	}
	return f, state, err
}

// clientResource returns a resource that a client has written. It reports what could not be in the state of a stack: no
// update could begin with that.
func clientResource(name deployments.StackName, raw json.RawMessage) (r storedResource, err error) {
	if err := affordable("a resource", raw); err != nil {
		return r, err
	}
	if err := rawjson.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("a resource cannot be read: %w", err)
	}
	return r, r.check(name)
}

// check reports why a resource that a client has written cannot be in the state of a stack.
func (r *storedResource) check(name deployments.StackName) error {
	if err := r.checkLoadable(); err != nil {
		return fmt.Errorf("a resource (%s) cannot be in a state: %w", printable(string(r.URN)), err)
	}
	if string(r.URN.Stack()) != name.Stack || string(r.URN.Project()) != name.Project {
		return fmt.Errorf("the deployment is of another stack: it has the resource %s, and this is %s; `pulumi stack "+
			"rename` moves a stack", printable(string(r.URN)), name)
	}
	return nil
}

// check reports why a pending operation that a client has written cannot be in the state of a stack.
func (o *storedOperation) check(name deployments.StackName) error {
	if !slices.Contains(journal.Operations, o.Type) {
		return fmt.Errorf("%q is no kind of operation", printable(o.Type))
	}
	return o.Resource.check(name)
}

// clientDraft returns a draft of a deployment that the client of an update has made; see draftOf.
func (s *Store) clientDraft(ctx context.Context, name deployments.StackName, f deploymentFile) (*draft, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return draftOf(ctx, name, r.ID, f, func(*storedResource) error { return nil })
}

// draftOf returns a draft of a deployment that a client has made for the stack of an identity; CodeInvalid when it
// cannot be loaded, is of another stack, or check fails for a resource. Its values are neither read nor changed: the
// client may have encrypted them with a key that the service does not have. A state that breaks an invariant is written
// with the error, as that of every update: what was done must not get lost.
func draftOf(
	ctx context.Context, name deployments.StackName, id string, f deploymentFile, check func(*storedResource) error,
) (*draft, error) {
	d := &draft{base: &Checkpoint{name: "the deployment"}, writtenPending: len(f.Deployment.PendingOperations)}
	features := map[string]bool{}
	err := judgeClient(ctx, name, f, func(r *storedResource) error {
		if err := check(r); err != nil {
			return err
		}
		r.features(func(name string) { features[name] = true })
		state := r.header()
		state.Key = snapshot.BaseKey(len(d.states))
		d.states = append(d.states, state)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if f.Deployment.SecretsProviders, err = ownSection(f.Deployment.SecretsProviders, name, id); err != nil {
		return nil, err
	}
	if slices.Contains(f.Features, featureByteString) {
		features[featureByteString] = true
	}
	if len(f.Deployment.Snippets) > 0 && string(f.Deployment.Snippets) != "null" {
		features[featureSnippets] = true
	}
	f.Version, f.Features = deploymentVersion, slices.Sorted(maps.Keys(features))
	if len(features) > 0 {
		f.Version = deploymentVersionFeatures
	}
	f.Deployment.Metadata.IntegrityErrorMetadata = nil
	if broken := snapshot.Verify(d.states); broken != nil {
		f.Deployment.Metadata.IntegrityErrorMetadata = &apitype.SnapshotIntegrityErrorMetadataV1{
			Version: engineVersion, Error: broken.Error()}
	}
	if d.written, err = splice(f, f.Deployment.Resources); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment is no JSON: %w", err)
	}
	return d, nil
}

// ImportAsIs makes a deployment of the stock CLI the stack's next version, and returns it. Unlike Import, it decrypts
// nothing: the service may not have the key. It fails as Import does.
func (s *Store) ImportAsIs(ctx context.Context, x Exchange, in apitype.UntypedDeployment) (int, error) {
	r, err := s.stackKeysOf(ctx, x.Stack)
	if err != nil {
		return 0, err
	}
	d, err := draftAsIs(ctx, x.Stack, r.ID, in)
	if err != nil {
		return 0, err
	}
	return s.replace(ctx, x, d)
}

// draftAsIs returns a draft of a deployment of the stock CLI for the stack of an identity, which may not be there yet.
func draftAsIs(
	ctx context.Context, name deployments.StackName, id string, in apitype.UntypedDeployment,
) (*draft, error) {
	around, err := json.Marshal(apitype.UntypedDeployment{Version: in.Version, Features: in.Features,
		Deployment: json.RawMessage("null")})
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment is no JSON: %w", err)
	}
	text := deploymentText{around: around}
	if len(in.Deployment) > 0 {
		text.deployment = in.Deployment
	}
	f, err := parseWritten(ctx, text)
	for i := range f.Deployment.PendingOperations {
		if err == nil {
			err = f.Deployment.PendingOperations[i].Resource.wellFormed()
		}
	}
	if err != nil {
		return nil, refused(err)
	}
	d, err := draftOf(ctx, name, id, f, (*storedResource).wellFormed)
	if err == nil {
		err = snapshot.Verify(d.states)
	}
	if err != nil {
		return nil, refused(err)
	}
	return d, nil
}
