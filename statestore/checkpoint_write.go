package statestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/pack"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/klauspost/compress/zstd"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// engineVersion is the writer's name in a manifest.
const engineVersion = "deployctl/1"

// draft is a checkpoint to be written.
type draft struct {
	base    *Checkpoint // where references to the base lead; not nil
	states  []engine.State
	pending []engine.PendingOperation
	codec   *bags.Codec
	// secrets encrypts; with showSecrets nothing is encrypted, and the section names the provider only.
	secrets     secrets
	showSecrets bool
	// integrity, if not empty, is an invariant that the states break and that could not be repaired.
	integrity string
	index     map[urn.URN][]int // see copiesOf
	// next are the generations of the next creates of what the update has created.
	next map[urn.URN]int
	// names are the new URNs of resources that an edit has renamed.
	names map[urn.URN]urn.URN
	// written, if not nil, are the parts of the deployment JSON itself, which a client has made, with so many pending
	// operations.
	written        [][]byte
	writtenPending int
}

// Written describes a checkpoint that was written.
type Written struct {
	Version   int    `json:"version"`
	Digest    string `json:"digest"` // SHA-256 of its JSON
	Resources int    `json:"resources"`
	Pending   int    `json:"pending,omitempty"`
	// Base is the version before; only the end of a lease sets it.
	Base int `json:"-"`
}

// writtenOf describes a checkpoint by its text.
func writtenOf(version int, data []byte) Written {
	deployment := rawjson.Member(data, "deployment")
	count := func(list string) (n int) {
		for range rawjson.Elements(rawjson.Member(deployment, list)) {
			n++
		}
		return n
	}
	return Written{Version: version, Digest: sha256Hex(data), Resources: count("resources"),
		Pending: count("pending_operations")}
}

// written describes the newest checkpoint of a stack, as its head does.
func (h *Head) written() Written {
	return Written{Version: h.Version, Digest: h.Digest, Resources: h.Resources, Pending: h.Pending}
}

// encode returns the deployment JSON of a draft, in parts. What has not changed since the base is a part of that, with
// its ciphertexts.
func (d *draft) encode(ctx context.Context, manifest apitype.ManifestV1) ([][]byte, error) {
	if d.written != nil {
		return d.written, nil
	}
	if err := mempool.Take(ctx, costliest(d.base.file.Deployment.Resources)); err != nil {
		return nil, err
	}
	features := map[string]bool{}
	for _, f := range d.base.file.Features { // copied parts are not searched for features
		if f == featureByteString {
			features[f] = true
		}
	}
	out := deploymentFile{Version: deploymentVersion, Deployment: deployment{
		Manifest: manifest, SecretsProviders: &d.secrets.section,
		Snippets: d.base.file.Deployment.Snippets,
	}}
	if d.integrity != "" {
		out.Deployment.Metadata.IntegrityErrorMetadata = &apitype.SnapshotIntegrityErrorMetadataV1{
			Version: engineVersion, Error: d.integrity}
	}
	var err error
	if out.Deployment.Extensions, err = d.extensions(ctx); err != nil {
		return nil, err
	}
	resources, err := d.resources(ctx, features)
	if err != nil {
		return nil, err
	}
	for _, op := range d.pending {
		r, err := d.resource(ctx, op.State, features)
		if err != nil {
			return nil, err
		}
		stored := storedOperation{Resource: r, Type: op.Kind, Seed: op.Seed, Since: op.Since, Reason: op.Reason}
		if op.Kind == "creating" {
			stored.Done = &op.Done
		}
		out.Deployment.PendingOperations = append(out.Deployment.PendingOperations, stored)
	}
	if out.Deployment.Snippets != nil {
		features[featureSnippets] = true
	}
	if out.Features = slices.Sorted(maps.Keys(features)); len(out.Features) > 0 {
		out.Version = deploymentVersionFeatures
	}
	return splice(out, resources)
}

// splice returns the parts of a deployment with resources, which are JSON already: encoding/json would parse them all
// again.
func splice[T ~[]byte](f deploymentFile, resources []T) ([][]byte, error) {
	const mark = `"resources":[0]`
	f.Deployment.Resources = []json.RawMessage{json.RawMessage("0")}
	frame, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	before, after, ok := bytes.Cut(frame, []byte(mark))
	if !ok {
		return nil, errors.New("the deployment has no place for resources")
	}
	parts := make([][]byte, 0, 2*len(resources)+2)
	parts = append(parts, append(before, `"resources":[`...))
	for i, r := range resources {
		if i > 0 {
			parts = append(parts, between)
		}
		parts = append(parts, r)
	}
	return append(parts, append([]byte("]"), after...)), nil
}

// between stands between two resources.
var between = []byte(",\n")

func (d *draft) resources(ctx context.Context, features map[string]bool) ([][]byte, error) {
	out := make([][]byte, len(d.states))
	for i, s := range d.states {
		if j, ok := d.unchanged(s); ok {
			d.base.resources[j].features(func(f string) { features[f] = true })
			out[i] = d.base.file.Deployment.Resources[j]
			continue
		}
		r, err := d.resource(ctx, s, features)
		if err != nil {
			return nil, err
		}
		if out[i], err = json.Marshal(r); err != nil {
			return nil, fmt.Errorf("resource %s: %w", s.URN, err)
		}
	}
	return out, nil
}

// unchanged returns the index of the base's resource that equals a state in every field.
func (d *draft) unchanged(s engine.State) (int, bool) {
	j, ok := s.Key.Base()
	if !ok || j >= len(d.base.states) {
		return 0, false
	}
	if raw := d.base.file.Deployment.Resources[j]; !d.copies(raw) || d.mayName(raw) {
		return 0, false
	}
	return j, reflect.DeepEqual(s, d.base.states[j])
}

// copies reports whether JSON of the base can be copied to the draft.
func (d *draft) copies(raw []byte) bool {
	if bags.MayHaveUnknown(raw) {
		return false
	}
	if !bytes.Contains(raw, []byte(sig.Secret)) {
		return true
	}
	if d.showSecrets || !d.secrets.sameAs(d.base.file.Deployment.SecretsProviders) {
		return false
	}
	return !d.base.imported || !bytes.Contains(raw, []byte(`"plaintext"`))
}

func (d *draft) resource(ctx context.Context, s engine.State, features map[string]bool) (storedResource, error) {
	r := storedHeader(s)
	if old, _ := d.base.find(s.Rest); old != nil {
		r.restFields = old.restFields
	}
	r.features(func(f string) { features[f] = true })
	var err error
	if r.Inputs, err = d.values(ctx, s.URN, s.Inputs, features); err != nil {
		return r, fmt.Errorf("the inputs of %s: %w", s.URN, err)
	}
	if r.Outputs, err = d.values(ctx, s.URN, s.Outputs, features); err != nil {
		return r, fmt.Errorf("the outputs of %s: %w", s.URN, err)
	}
	trigger, err := d.values(ctx, s.URN, s.Trigger, features)
	if err != nil {
		return r, fmt.Errorf("the replacement trigger of %s: %w", s.URN, err)
	}
	var value struct {
		Value json.RawMessage `json:"value"`
	}
	if trigger != nil {
		err = json.Unmarshal(trigger, &value)
		r.ReplacementTrigger = value.Value
	}
	return r, err
}

// values returns the stored form of a bag of a resource; nil when it is empty.
func (d *draft) values(
	ctx context.Context, u urn.URN, bag engine.Bag, features map[string]bool,
) (json.RawMessage, error) {
	if r, part := d.base.find(bag.Ref); r != nil {
		if raw := r.raw(part); len(raw) > 0 && d.copies(raw) && !d.mayName(raw) {
			return raw, nil
		}
	}
	values, err := d.codec.Decode(ctx, bag)
	values = bags.Known(values, nil) // a checkpoint has no unknown values
	values = d.withNames(values)
	if err != nil || len(values) == 0 {
		return nil, err
	}
	stored, err := bags.Stored(values, d.encrypt(ctx, u))
	if stored.ByteStrings {
		features[featureByteString] = true
	}
	return stored.JSON, err
}

func (s *Store) manifest(base *Checkpoint) apitype.ManifestV1 {
	m := apitype.ManifestV1{Time: s.now().UTC(), Version: engineVersion, Plugins: base.file.Deployment.Manifest.Plugins}
	m.Magic = m.NewMagic()
	return m
}

// zstdWriter is shared: EncodeAll may be called concurrently.
var zstdWriter, _ = zstd.NewWriter(nil)

// write stores a draft as the checkpoint of the claim's update. An existing checkpoint was written by an earlier
// attempt, and is replaced only while the claim holds.
func (s *Store) write(ctx context.Context, c Claim, d *draft) (Written, error) {
	return s.writeUnless(ctx, c, d, func() error { return nil })
}

// writeUnless is write for who may find out meanwhile why no other checkpoint is to be replaced.
func (s *Store) writeUnless(ctx context.Context, c Claim, d *draft, unless func() error) (Written, error) {
	r, err := s.stackKeysOf(ctx, c.Update.StackName)
	if err != nil {
		return Written{}, err
	}
	parts, err := d.encode(ctx, s.manifest(d.base))
	if err != nil {
		return Written{}, deployments.Errorf(deployments.CodeOf(err), "write the state of %s: %w", c.Update, err)
	}
	w := Written{Version: c.Update.Number(), Digest: pack.Digest(parts), Resources: len(d.states),
		Pending: len(d.pending) + d.writtenPending}
	key := checkpointKey(c.Update.StackName, w.Version)
	packed := s.packed(r.ID, w.Version, parts...)
	tag, err := s.objects.Put(ctx, key, packed, bucket.Condition{Absent: true})
	for errors.Is(err, bucket.ErrChanged) {
		if err := unless(); err != nil {
			return Written{}, err
		}
		if err := s.Holds(ctx, c); err != nil {
			return Written{}, err
		}
		there, getErr := s.objects.Get(ctx, key)
		if getErr != nil {
			return Written{}, bucket.Failed(getErr, "read "+key)
		}
		tag, err = s.objects.Put(ctx, key, packed, bucket.Condition{Tag: there.Tag})
	}
	if err == nil {
		s.recent.keep(key, bucket.Object{Data: packed, Tag: tag})
	}
	return w, bucket.Failed(err, "write "+key)
}
