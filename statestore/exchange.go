package statestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/pack"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Export returns the deployment of a stack version, in Pulumi's format; version 0 is the latest. Secrets are
// ciphertexts, or plaintext with showSecrets. If x names a different type of secrets provider than the version has,
// they are encrypted with that one, so that the stack can be moved to where that provider works.
func (s *Store) Export(
	ctx context.Context, x Exchange, version int, showSecrets bool,
) (apitype.UntypedDeployment, error) {
	var d apitype.UntypedDeployment
	h, err := s.Head(ctx, x.Stack)
	if err != nil {
		return d, err
	}
	if version == 0 {
		version = h.Version
	}
	data, err := s.exportJSON(ctx, x, version, showSecrets)
	if err != nil {
		return d, err
	}
	if d, err = untyped(data); err != nil {
		return d, bucket.Damaged(checkpointKey(x.Stack, version), err)
	}
	return d, nil
}

// untyped returns a deployment that is a part of its text, which is valid: encoding/json would copy it.
func untyped(data []byte) (d apitype.UntypedDeployment, err error) {
	d.Deployment = rawjson.Member(data, "deployment")
	for name, field := range map[string]any{"version": &d.Version, "features": &d.Features} {
		if raw := rawjson.Member(data, name); raw != nil {
			err = errors.Join(err, rawjson.Unmarshal(raw, field))
		}
	}
	return d, err
}

// Exchange names the stack of an export or an import, and how its secrets are encrypted.
type Exchange struct {
	Stack   deployments.StackName
	Secrets deployments.SecretsProvider
	// Forget allows an import or a restore to drop all resources of the stack from its state.
	Forget bool
	// Base, if not nil, is the version that the deployment was made from: it must be the stack's newest.
	Base *int
	// Encrypt, if not nil, is the provider with which an edit encrypts all secrets anew.
	Encrypt *deployments.SecretsProvider
	// DryRun checks an edit, and writes nothing.
	DryRun bool
	// ID, if not empty, is the identity that the stack must have.
	ID string
	// Reserve, if not nil, returns the version for an import or a restore, which no update has or waits for.
	Reserve func(context.Context, deployments.StackName) (int, error)
}

func (s *Store) exportJSON(ctx context.Context, x Exchange, version int, showSecrets bool) ([]byte, error) {
	r, err := s.stackKeysOf(ctx, x.Stack)
	if err != nil {
		return nil, err
	}
	if version > 0 && !showSecrets { // as it is stored, which needs no key
		data, err := s.checkpointJSON(ctx, x.Stack, version)
		if err != nil {
			return nil, err
		}
		f, err := parseFile(ctx, deploymentText{around: data}, false)
		switch {
		case err != nil:
			return nil, bucket.Damaged(checkpointKey(x.Stack, version), err)
		case asStored(f, x):
			return data, nil
		case f.Deployment.SecretsProviders == nil && !mayHaveSigned(data):
			p, err := r.provider(x.Secrets)
			if err != nil {
				return nil, err
			}
			f.Deployment.SecretsProviders = &p.section
			return whole(splice(f, f.Deployment.Resources))
		}
	}
	base, err := s.Checkpoint(ctx, x.Stack, version, x.Secrets)
	if err != nil {
		return nil, err
	}
	d := r.copyOf(base)
	d.showSecrets = showSecrets
	if asStored(base.file, x) {
		d.secrets.section = *base.file.Deployment.SecretsProviders
	} else if d.secrets, err = r.provider(x.Secrets); err != nil {
		return nil, err
	}
	manifest := base.file.Deployment.Manifest
	if version == 0 {
		manifest = s.manifest(base)
	}
	return whole(d.encode(ctx, manifest))
}

func whole(parts [][]byte, err error) ([]byte, error) { return pack.Whole(parts), err }

// asStored reports whether an export keeps the deployment's secrets provider.
func asStored(f deploymentFile, x Exchange) bool {
	section := f.Deployment.SecretsProviders
	return section != nil && (x.Secrets.Type == "" || x.Secrets.Type == section.Type)
}

// mayHaveSigned reports whether a deployment may have a secret, or a value that is not known.
func mayHaveSigned(data []byte) bool {
	return bytes.Contains(data, []byte(sig.Secret)) || bags.MayHaveUnknown(data)
}

// copyOf returns a draft of a checkpoint's content, without secrets.
func (r *stackKeys) copyOf(base *Checkpoint) *draft {
	return &draft{
		base: base, states: base.states, pending: base.pending, integrity: base.integrityError(),
		codec: &bags.Codec{Key: r.digests, Resolve: func(_ context.Context, ref engine.Ref) (resource.PropertyMap, error) {
			return base.Values(ref)
		}},
	}
}

// CheckIntegrity reports, as CodeFormat, that the checkpoint was written although it breaks an invariant.
func (c *Checkpoint) CheckIntegrity() error {
	if c.integrityError() == "" {
		return nil
	}
	return deployments.Errorf(deployments.CodeFormat,
		"%s holds all that was done, but is not a valid state: %s; put it right: `deployctl stack export --file "+
			"state.json`, correct "+
			"the file, `deployctl stack import --file state.json`", c.name, c.integrityError())
}

func (c *Checkpoint) integrityError() string {
	if m := c.file.Deployment.Metadata.IntegrityErrorMetadata; m != nil {
		return m.Error
	}
	return ""
}

// Import makes a deployment the stack's next version, and returns it. CodeInvalid: the deployment is of another stack,
// breaks an invariant, or has secrets that cannot be decrypted. CodeUnconfirmed: see confirmForget. CodeConflict: the
// stack has an update running.
func (s *Store) Import(ctx context.Context, x Exchange, in apitype.UntypedDeployment) (int, error) {
	r, err := s.stackKeysOf(ctx, x.Stack)
	if err != nil {
		return 0, err
	}
	base, err := r.parseImport(ctx, x, in)
	if err != nil {
		return 0, err
	}
	d := r.copyOf(base)
	d.integrity = ""
	if d.secrets, err = r.provider(x.Secrets); err != nil {
		return 0, err
	}
	return s.replace(ctx, x, d)
}

// replace makes a draft the next version of a stack that has no update. It releases its claim even if the client
// leaves; if this process dies first, recovery releases it.
func (s *Store) replace(ctx context.Context, x Exchange, d *draft) (int, error) {
	r, err := s.prepare(ctx, x, d)
	if err != nil {
		return 0, err
	}
	return r.commit(ctx)
}

// replacement is a draft that may become the next version of a stack, which is claimed for it.
type replacement struct {
	store  *Store
	draft  *draft
	claim  Claim
	update deployments.UpdateName
}

// prepare claims a stack that has no update for a draft, and refuses what may not become its next version. What it
// returns is to be committed or released.
func (s *Store) prepare(ctx context.Context, x Exchange, d *draft) (*replacement, error) {
	h, err := s.Head(ctx, x.Stack)
	if err != nil {
		return nil, err
	}
	if err := x.stands(h.Version); err != nil {
		return nil, err
	}
	if err := s.confirmForget(ctx, x, d); err != nil {
		return nil, err
	}
	version := max(h.Next, h.Version+1)
	if x.Reserve != nil {
		if version, err = x.Reserve(ctx, x.Stack); err != nil {
			return nil, err
		}
	}
	r := &replacement{store: s, draft: d,
		update: deployments.UpdateName{StackName: x.Stack, Version: strconv.Itoa(version)}}
	r.claim, err = s.Claim(context.WithoutCancel(ctx), Claimant{Update: r.update, Writer: exchanging + rand.Text(),
		Unclaimed: true, StackID: x.ID})
	if err != nil {
		return nil, err
	}
	if r.claim.Base != h.Version { // an update has ended meanwhile
		if err = x.stands(r.claim.Base); err == nil {
			err = s.confirmForget(ctx, x, d)
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.release(ctx))
	}
	return r, nil
}

// commit makes the draft the stack's next version, and returns that; if it fails, the stack is released.
func (r *replacement) commit(ctx context.Context) (int, error) {
	w, err := r.store.write(ctx, r.claim, r.draft)
	if err == nil {
		err = r.store.Commit(context.WithoutCancel(ctx), r.claim, w)
	}
	if deployments.CodeOf(err) == deployments.CodeConflict {
		err = deployments.Errorf(deployments.CodeConflict,
			"%s has not become the state, for the stack was given to another update meanwhile: do it again", r.update)
	}
	if err != nil {
		return 0, errors.Join(err, r.release(ctx))
	}
	r.store.Sweep(ctx, r.update.StackName, r.claim.Base)
	return w.Version, nil
}

// release gives the claim up, and leaves the stack as it is.
func (r *replacement) release(ctx context.Context) error {
	return r.store.Commit(context.WithoutCancel(ctx), r.claim, Written{})
}

// parseImport parses a deployment that a client sends.
func (r *stackKeys) parseImport(
	ctx context.Context, x Exchange, in apitype.UntypedDeployment,
) (*Checkpoint, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment is no JSON: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the deployment is no JSON: %w", err)
	}
	if err := checkImported(ctx, compact.Bytes()); err != nil {
		return nil, refused(err)
	}
	c := &Checkpoint{name: "the deployment", imported: true, stack: x.Stack}
	if err := c.parse(ctx, compact.Bytes(), r, x.Secrets); err != nil {
		return nil, refused(err)
	}
	if err := wellFormed(c.file, c.resources); err != nil {
		return nil, refused(err)
	}
	if c.integrityError() != "" { // parse accepts it
		if err := snapshot.Verify(c.states); err != nil {
			return nil, refused(err)
		}
	}
	if u := otherStackResource(x.Stack, c.states, c.file.Deployment.PendingOperations); u != "" {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"the deployment is of another stack: it has the resource %s, and this is %s; `deployctl stack rename` "+
				"moves a stack", u, x.Stack)
	}
	return c, nil
}

// checkImported reports why a deployment that a client sends would take too much memory.
func checkImported(ctx context.Context, data []byte) error {
	f, err := parseFile(ctx, deploymentText{around: data}, true)
	if n := len(f.Deployment.Resources); err == nil && n > deployments.MaxImportResources {
		err = deployments.TooLarge("it has %d resources; at most %d are possible", n, deployments.MaxImportResources)
	}
	for _, raw := range f.Deployment.Resources {
		if err == nil {
			err = affordable("a resource", raw)
		}
	}
	return err
}

// otherStackResource returns a resource, or that of a pending operation, which belongs to another stack; "" when there
// is none.
func otherStackResource(name deployments.StackName, states []engine.State, operations []storedOperation) urn.URN {
	other := func(u urn.URN) bool {
		return !u.IsValid() || string(u.Stack()) != name.Stack || string(u.Project()) != name.Project
	}
	for _, s := range states {
		if other(s.URN) {
			return s.URN
		}
	}
	for _, o := range operations {
		if u := o.Resource.URN; other(u) {
			return u
		}
	}
	return ""
}

func refused(err error) error {
	if bucket.Interrupted(err) {
		return err
	}
	return deployments.Errorf(deployments.CodeInvalid, "the deployment cannot be imported: %w", err)
}
