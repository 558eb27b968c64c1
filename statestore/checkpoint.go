package statestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/share"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/pack"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// Checkpoint is a checkpoint in memory: the headers of its resources, and their values on request. It is immutable and
// may be used concurrently. Callers must not change what its methods return.
type Checkpoint struct {
	// Version of the stack; 0 for the empty checkpoint of a new stack.
	Version int

	name      string // for errors
	file      deploymentFile
	resources []storedResource
	states    []engine.State
	pending   []engine.PendingOperation
	dec       config.Decrypter
	// imported means that this service did not write it, so secrets may be in plaintext.
	imported bool
	// stack, if it is known, may be named by the secrets provider of what was imported.
	stack deployments.StackName
	size  int
}

// States returns the headers in stored order, with keys and references to the parts of this base.
func (c *Checkpoint) States() []engine.State { return c.states }

// Pending returns the pending operations. Their numbers are -1, -2 and so on, so that they differ from those of a new
// update; their states have keys and references of their own.
func (c *Checkpoint) Pending() []engine.PendingOperation { return c.pending }

// Headers returns at most limit headers from index from on; the first part has the pending operations.
func (c *Checkpoint) Headers(from, limit int) deployments.Headers {
	to := min(from+limit, len(c.states))
	h := deployments.Headers{States: c.states[min(from, to):to]}
	if from == 0 {
		h.Pending = c.pending
	}
	if to < len(c.states) {
		h.Next = to
	}
	return h
}

// Values returns the values that a reference to a part of the base means.
func (c *Checkpoint) Values(ref engine.Ref) (resource.PropertyMap, error) {
	r, part := c.find(ref)
	if r == nil || part == "" {
		return nil, deployments.Errorf(deployments.CodeInternal, "the checkpoint %s has no %s", c.name, ref)
	}
	if part == snapshot.PartExtension {
		return c.extension(r)
	}
	values, err := c.decode(r, part)
	if err != nil {
		return nil, c.invalid(fmt.Errorf("resource %s: %w", r.URN, err))
	}
	return values, nil
}

// find returns the resource and the part that a reference means; nil when there is no such resource.
func (c *Checkpoint) find(ref engine.Ref) (*storedResource, engine.Part) {
	key, part, _ := ref.State()
	operations := c.file.Deployment.PendingOperations
	if i, ok := key.Pending(); ok && i < len(operations) {
		return &operations[i].Resource, part
	}
	if i, ok := key.Base(); ok && i < len(c.resources) {
		return &c.resources[i], part
	}
	return nil, ""
}

// raw returns the stored form of one part of a resource.
func (r *storedResource) raw(part engine.Part) json.RawMessage {
	switch part {
	case snapshot.PartInputs:
		return r.Inputs
	case snapshot.PartOutputs:
		return r.Outputs
	case snapshot.PartTrigger:
		if len(r.ReplacementTrigger) > 0 && string(r.ReplacementTrigger) != "null" {
			return json.RawMessage(`{"value":` + string(r.ReplacementTrigger) + `}`)
		}
	}
	return nil
}

func (c *Checkpoint) decode(r *storedResource, part engine.Part) (resource.PropertyMap, error) {
	return bags.FromStored(r.raw(part), func(ciphertext string) (string, error) {
		return c.dec.DecryptValue(context.Background(), ciphertext)
	})
}

// invalid returns the error about a damaged checkpoint.
func (c *Checkpoint) invalid(err error) error {
	var e *deployments.Error
	if errors.As(err, &e) || bucket.Interrupted(err) {
		return bucket.Failed(err, c.name)
	}
	return unusable(c.name, fmt.Errorf("it is not a valid state: %w", err))
}

// cacheEntry is one entry of the cache. A checkpoint is read once for all concurrent callers; c and err are set when
// done is closed.
type cacheEntry struct {
	organization string

	done chan struct{}
	c    *Checkpoint
	err  error
}

// openTimeout limits reading a checkpoint, whoever waits for it.
const openTimeout = 10 * time.Minute

// Limits of the cache: the number of checkpoints, and their bytes of JSON.
const (
	cachedCheckpoints = 16
	cachedBytes       = 64 << 20
)

// Checkpoint reads the checkpoint of a version; 0 returns an empty one. The latest ones stay in memory, so that reading
// all parts of one takes a single read. p is the secrets provider of the update's request. CodeNotFound: there is no
// such version. CodeFormat: it is damaged or breaks an invariant.
func (s *Store) Checkpoint(
	ctx context.Context, name deployments.StackName, version int, p deployments.SecretsProvider,
) (*Checkpoint, error) {
	if version == 0 {
		return &Checkpoint{name: "the empty state"}, nil
	}
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%s/%d/%x", r.ID, version, sha256.Sum256(append([]byte(p.Type+p.Salt), p.Key...)))
	entry, first := s.cached(id, name.Organization)
	if first { // not in the context of this caller, who may leave before the others
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
		go func() {
			defer cancel()
			entry.c, entry.err = s.open(ctx, r, name, version, p)
			if entry.err != nil {
				s.dropEntry(id, entry)
			}
			close(entry.done)
		}()
	}
	select {
	case <-ctx.Done():
		return nil, bucket.Failed(ctx.Err(), "read "+checkpointKey(name, version))
	case <-entry.done:
	}
	if entry.err == nil {
		s.evict()
	}
	return entry.c, entry.err
}

// cached returns the entry of a checkpoint of an organization, and whether it is new.
func (s *Store) cached(id, organization string) (entry *cacheEntry, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := s.cache[id]
	if ok {
		s.cacheOrder = slices.DeleteFunc(s.cacheOrder, func(other string) bool { return other == id })
	} else {
		entry = &cacheEntry{organization: organization, done: make(chan struct{})}
		s.cache[id] = entry
	}
	s.cacheOrder = append(s.cacheOrder, id)
	return entry, !ok
}

func (s *Store) dropEntry(id string, entry *cacheEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache[id] == entry {
		delete(s.cache, id)
		s.cacheOrder = slices.DeleteFunc(s.cacheOrder, func(other string) bool { return other == id })
	}
}

// ready reports whether the checkpoint has been read.
func (o *cacheEntry) ready() bool {
	select {
	case <-o.done:
		return o.c != nil
	default:
		return false
	}
}

// evict drops checkpoints until the rest, but at least one, is within the limits: of the organization that has the most
// those that were used longest ago, because reading a large one again takes long.
func (s *Store) evict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		kept := make([]share.Kept, len(s.cacheOrder))
		for i, id := range s.cacheOrder {
			entry := s.cache[id]
			kept[i] = share.Kept{Party: entry.organization, Awaited: !entry.ready()}
			if !kept[i].Awaited {
				kept[i].Size = entry.c.size
			}
		}
		i := share.Bounds{Number: cachedCheckpoints, Size: cachedBytes}.Excess(kept)
		if i < 0 {
			return
		}
		delete(s.cache, s.cacheOrder[i])
		s.cacheOrder = slices.Delete(s.cacheOrder, i, i+1)
	}
}

// checkpointForm is the end of a checkpoint's key.
const checkpointForm = ".json.zst"

func checkpointKey(name deployments.StackName, version int) string {
	return stackobjects.Key(name, "checkpoints", strconv.Itoa(version)+checkpointForm)
}

func (s *Store) open(
	ctx context.Context, r *stackKeys, name deployments.StackName, version int, p deployments.SecretsProvider,
) (*Checkpoint, error) {
	data, err := s.checkpointJSON(ctx, name, version)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Version: version, name: checkpointKey(name, version)}
	if err := c.parse(ctx, data, r, p); err != nil {
		return nil, c.invalid(err)
	}
	return c, nil
}

var zstdReader = pack.NewDecoder(4 << 30)

// zstdMagic begins every zstd frame. A checkpoint that was repaired by hand may be uncompressed.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// parse reads deployment JSON, computes the digests of all values, and checks the invariants.
func (c *Checkpoint) parse(
	ctx context.Context, data []byte, r *stackKeys, p deployments.SecretsProvider,
) (err error) {
	if c.file, c.resources, err = parseDeployment(ctx, data); err != nil {
		return err
	}
	if err := mempool.Take(ctx, costliest(c.file.Deployment.Resources)); err != nil {
		return err
	}
	if err := checkLoadable(c.file, c.resources); err != nil {
		return err
	}
	for i := range c.resources { // hand-made states may lack a provider's outputs, which equal its inputs
		if r := &c.resources[i]; snapshot.IsProvider(r.Type) && len(r.Outputs) == 0 {
			r.Outputs = r.Inputs
		}
	}
	c.size = len(data)
	section, err := ownSection(c.file.Deployment.SecretsProviders, c.stack, r.ID)
	if err != nil {
		return err
	}
	c.dec = r.reader(section, p)
	c.states = make([]engine.State, len(c.resources))
	var large sync.Mutex
	err = parallel(len(c.states), func(i int) (err error) {
		if len(c.file.Deployment.Resources[i]) > littleText { // what they take was taken once
			large.Lock()
			defer large.Unlock()
		}
		c.states[i], err = c.state(&c.resources[i], snapshot.BaseKey(i), r.digests)
		return err
	})
	if err != nil {
		return err
	}
	for i := range c.file.Deployment.PendingOperations {
		op := &c.file.Deployment.PendingOperations[i]
		state, err := c.state(&op.Resource, snapshot.PendingKey(i), r.digests)
		if err != nil {
			return err
		}
		c.pending = append(c.pending, engine.PendingOperation{
			Op: -1 - i, Kind: op.Type, State: state, Seed: op.Seed, Since: op.Since, Done: op.done(), Reason: op.Reason,
		})
	}
	if c.file.Deployment.Metadata.IntegrityErrorMetadata != nil {
		return nil // it was written although it breaks the invariant, and says so
	}
	return snapshot.Verify(c.states)
}

// state returns the header of a resource with keyed digests of its values.
func (c *Checkpoint) state(r *storedResource, k engine.Key, digests []byte) (engine.State, error) {
	s := r.header()
	s.Key = k
	if !r.empty() {
		s.Rest = k.Ref("")
	}
	if r.ExtensionRef != "" {
		s.Extension = engine.Bag{Digest: r.ExtensionRef, Ref: k.Ref(snapshot.PartExtension)}
	}
	for _, part := range snapshot.Parts {
		if len(r.raw(part)) == 0 {
			continue
		}
		values, err := c.decode(r, part)
		if err != nil {
			return s, fmt.Errorf("resource %s: %w", r.URN, err)
		}
		digest, err := bags.Digest(digests, values)
		if err != nil {
			return s, fmt.Errorf("resource %s: %w", r.URN, err)
		}
		if digest != "" {
			*s.Bag(part) = engine.Bag{Digest: digest, Ref: k.Ref(part)}
		}
		if part != snapshot.PartTrigger {
			continue
		}
		if s.TriggerValue, err = bags.TriggerValue(digests, values); err != nil {
			return s, fmt.Errorf("resource %s: %w", r.URN, err)
		}
	}
	return s, nil
}

// parallel calls f for 0 to n-1 on all processors, and returns the error of the lowest i that failed.
func parallel(n int, f func(i int) error) error {
	const chunk = 64
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n/chunk+1) {
		wg.Go(func() {
			for {
				to := int(next.Add(chunk))
				for i := to - chunk; i < min(to, n); i++ {
					errs[i] = f(i)
				}
				if to >= n {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
