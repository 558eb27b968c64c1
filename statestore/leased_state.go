package statestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/journal"
	"github.com/deployctl/deployctl/internal/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// FinishLease commits what the client of an update has written: the journal, or else the last whole deployment. Without
// either the stack keeps its version, and so it does when that cannot be a state (CodeInvalid). From its begin on
// nothing is accepted from the client. A repeated FinishLease has no effect and the same answer.
func (s *Store) FinishLease(ctx context.Context, u deployments.UpdateName) (Written, error) {
	h, err := s.Head(ctx, u.StackName)
	switch {
	case err != nil:
		return Written{}, err
	case h.Version == u.Number():
		return Written{Version: h.Version, Digest: h.Digest, Resources: h.Resources}, nil
	case h.Active == nil || h.Active.Version != u.Version: // it has ended without a version, or never began
		_, err := s.leasedState(ctx, Claim{Update: u, Base: h.Version})
		return Written{Resources: h.Resources}, err
	}
	claim, err := s.Claim(ctx, Claimant{Update: u, RequestID: h.Active.RequestID, Run: h.Active.Run, Writer: leaseEnd})
	if err != nil {
		return Written{}, err
	}
	d, err := s.leasedState(ctx, claim)
	w := Written{Resources: h.Resources, Base: claim.Base}
	if err != nil && deployments.CodeOf(err) == deployments.CodeInvalid {
		return w, errors.Join(s.Commit(ctx, claim, Written{}), err)
	}
	if err != nil {
		return w, err
	}
	if d == nil {
		return w, s.Commit(ctx, claim, Written{})
	}
	if w, err = s.write(ctx, claim, d); err != nil {
		return w, err
	}
	w.Base = claim.Base
	return w, s.Commit(ctx, claim, w)
}

// leasedState returns the state that a client has written; nil when there is none. What cannot be a state is the
// client's fault (CodeInvalid), even if it makes this service panic: otherwise the stack would never be free again.
func (s *Store) leasedState(ctx context.Context, c Claim) (d *draft, err error) {
	err = panics.Do("reading what the client of update "+c.Update.String()+" wrote", func() error {
		d, err = s.readLeased(ctx, c)
		return err
	})
	if defect := (*panics.PanicError)(nil); errors.As(err, &defect) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%w", defect)
	}
	return d, err
}

func (s *Store) readLeased(ctx context.Context, c Claim) (*draft, error) {
	entries, err := s.endJournal(ctx, c.Update)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return s.replayed(ctx, c, entries)
	}
	last, err := s.lastSnapshot(ctx, c.Update)
	if err != nil || last.tag == "" {
		return nil, err
	}
	f, err := writtenDeployment(last.deployment)
	if err != nil {
		return nil, err
	}
	return s.clientDraft(ctx, c.Update.StackName, f)
}

// endJournal writes the end of an update's journal, unless it has one, and returns the entries before it.
func (s *Store) endJournal(ctx context.Context, u deployments.UpdateName) ([]journal.Entry, error) {
	prefix := updateKey(u, journalFolder, "")
	for {
		l, err := s.objects.List(ctx, Query{Prefix: prefix})
		if err != nil {
			return nil, failed(err, "list "+prefix)
		}
		batches := make([][]byte, len(l.Keys))
		index, last := make(map[string]int, len(l.Keys)), 0
		for i, key := range l.Keys {
			index[key] = i
			if last, err = strconv.Atoi(path.Base(key)); err != nil {
				return nil, damaged(key, err)
			}
		}
		if err := each(l.Keys, func(key string) (err error) {
			batches[index[key]], err = s.get(ctx, u.StackName, key)
			return err
		}); err != nil {
			return nil, err
		}
		if len(batches) == 0 || string(batches[len(batches)-1]) != journalEnd {
			err = s.putJournal(ctx, u, last+1, []byte(journalEnd))
		}
		if errors.Is(err, ErrChanged) {
			continue // more was written meanwhile
		}
		if err != nil {
			return nil, err
		}
		return parsed(batches)
	}
}

// parsed returns the entries of the objects of a journal, each of which has some arrays of them.
func parsed(objects [][]byte) (entries []journal.Entry, err error) {
	arrays := json.NewDecoder(bytes.NewReader(bytes.Join(objects, []byte("\n"))))
	for {
		var array json.RawMessage
		if err := arrays.Decode(&array); errors.Is(err, io.EOF) {
			return entries, nil
		} else if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "the journal is not one: %w", err)
		}
		more, err := journal.Parse(array)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
}

// replayed returns the state that journal entries make of the base of an update.
func (s *Store) replayed(ctx context.Context, c Claim, entries []journal.Entry) (*draft, error) {
	var f deploymentFile
	var base journal.State
	if c.Base > 0 {
		data, err := s.checkpointJSON(ctx, c.Update.StackName, c.Base)
		if err != nil {
			return nil, err
		}
		if f, base, err = partsOf(data); err != nil {
			return nil, damaged(checkpointKey(c.Update.StackName, c.Base), err)
		}
	}
	state, err := journal.Replay(base, entries)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the journal of update %s cannot be replayed: %w", c.Update,
			err)
	}
	f.Deployment.Manifest = s.manifest(&Checkpoint{file: f})
	f.Deployment.Resources, f.Deployment.Snippets = state.Resources, state.Snippets
	f.Deployment.SecretsProviders, f.Deployment.PendingOperations = state.Secrets, nil
	if f.Features = nil; state.ByteStrings {
		f.Features = []string{featureByteString}
	}
	f.Deployment.Extensions = state.Extensions
	for _, raw := range state.Pending {
		var operation storedOperation
		if err := json.Unmarshal(raw, &operation); err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "a pending operation: %w", err)
		}
		f.Deployment.PendingOperations = append(f.Deployment.PendingOperations, operation)
	}
	return s.clientDraft(ctx, c.Update.StackName, f)
}

// partsOf returns the parts of a stored deployment that a journal can change.
func partsOf(data []byte) (deploymentFile, journal.State, error) {
	var f deploymentFile
	if err := json.Unmarshal(data, &f); err != nil {
		return f, journal.State{}, err
	}
	var rest struct {
		Deployment struct {
			Pending []json.RawMessage `json:"pending_operations"`
		} `json:"deployment"`
	}
	err := json.Unmarshal(data, &rest)
	return f, journal.State{
		Secrets: f.Deployment.SecretsProviders, Resources: f.Deployment.Resources, Pending: rest.Deployment.Pending,
		Snippets: f.Deployment.Snippets, Extensions: f.Deployment.Extensions,
		ByteStrings: slices.Contains(f.Features, featureByteString),
	}, err
}

// clientDraft returns a draft of a deployment that a client has made; CodeInvalid when it cannot be loaded or is of
// another stack. Its values are neither read nor changed: the
// client may have encrypted them with a key that the service does not have. A state that breaks an invariant is written
// with the error, as that of every update: what was done must not get lost.
func (s *Store) clientDraft(ctx context.Context, name deployments.StackName, f deploymentFile) (*draft, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return nil, err
	}
	if f.Deployment.SecretsProviders, err = r.ownSection(f.Deployment.SecretsProviders, name); err != nil {
		return nil, err
	}
	d := &draft{base: &Checkpoint{name: "the deployment"}}
	features := map[string]bool{}
	if slices.Contains(f.Features, featureByteString) {
		features[featureByteString] = true
	}
	resources, stored := make([][]byte, len(f.Deployment.Resources)), make([]storedResource, len(f.Deployment.Resources))
	for i, raw := range f.Deployment.Resources {
		if err := json.Unmarshal(raw, &stored[i]); err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "resource %d: %w", i, err)
		}
		stored[i].features(func(name string) { features[name] = true })
		state := stored[i].header()
		state.Key = engine.BaseKey(i)
		d.states, resources[i] = append(d.states, state), raw
	}
	if err := checkLoadable(f, stored); err != nil { // no update could begin with it
		return nil, deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	if len(f.Deployment.Snippets) > 0 && string(f.Deployment.Snippets) != "null" {
		features[featureSnippets] = true
	}
	if u := otherStackResource(name, d.states, f.Deployment.PendingOperations); u != "" {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment is of another stack: it has the resource "+
			"%s, and this is %s; `pulumi stack rename` moves a stack", u, name)
	}
	f.Version, f.Features = deploymentVersion, slices.Sorted(maps.Keys(features))
	if len(features) > 0 {
		f.Version = deploymentVersionFeatures
	}
	f.Deployment.Metadata.IntegrityErrorMetadata = nil
	if broken := engine.Verify(d.states); broken != nil {
		f.Deployment.Metadata.IntegrityErrorMetadata = &apitype.SnapshotIntegrityErrorMetadataV1{
			Version: engineVersion, Error: broken.Error()}
	}
	if d.written, err = splice(f, resources); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment is no JSON: %w", err)
	}
	return d, nil
}

// writtenDeployment reads a whole deployment that a client writes. It reports, as CodeInvalid, why that could not
// become the state.
func writtenDeployment(data []byte) (deploymentFile, error) {
	f, resources, err := parseDeployment(data)
	if err == nil {
		err = checkLoadable(f, resources)
	}
	if err == nil {
		var whole struct{ Deployment *struct{} }
		if err = json.Unmarshal(data, &whole); err == nil && whole.Deployment == nil {
			err = errors.New("it has no deployment")
		}
	}
	if err != nil {
		err = deployments.Errorf(deployments.CodeInvalid, "this deployment cannot be the state of a stack: %w", err)
	}
	return f, err
}

// ImportAsIs makes a deployment of the stock CLI the stack's next version, and returns it. Unlike Import, it decrypts
// nothing: the service may not have the key. It fails as Import does.
func (s *Store) ImportAsIs(ctx context.Context, x Exchange, in apitype.UntypedDeployment) (int, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return 0, deployments.Errorf(deployments.CodeInvalid, "the deployment is no JSON: %w", err)
	}
	f, resources, err := parseDeployment(data)
	if err == nil {
		err = wellFormed(f, resources)
	}
	if err != nil {
		return 0, refused(err)
	}
	d, err := s.clientDraft(ctx, x.Stack, f)
	if err != nil {
		return 0, refused(err)
	}
	if err := engine.Verify(d.states); err != nil {
		return 0, refused(err)
	}
	return s.replace(ctx, x, d)
}
