package statestore

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/journal"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/deployctl/deployctl/statestore/stacksecrets"
	"github.com/deployctl/deployctl/statestore/updates"
)

// rawFolders are what a raw export has of an active update, in this order. Its request, its suspended core, the
// outcomes of lost attempts and its event log are no part of the state.
var rawFolders = []string{"delta", blobFolder, leases.JournalFolder, leases.SnapshotFolder}

// rawPage is how many names of objects a raw export lists at once.
const rawPage = 1000

// mostFaults are named in the index of a raw export; of more, the number.
const mostFaults = 10_000

// rawIndex is the last file of a raw export.
type rawIndex struct {
	Stack    string     `json:"stack"`
	Exported time.Time  `json:"exported"`
	Version  int        `json:"version"`          // of the newest checkpoint
	Active   string     `json:"active,omitempty"` // update
	Objects  int        `json:"objects"`          // in the archive
	Faults   []rawFault `json:"faults"`
	More     int        `json:"moreFaults,omitempty"`
}

// rawFault says what is wrong with an object.
type rawFault struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

// rawExport writes the archive of one stack.
type rawExport struct {
	*Store
	name  deployments.StackName
	tar   *tar.Writer
	keys  *stackKeys // nil: nobody vouches for which stack this is, so nothing that is sealed is opened
	index rawIndex
}

// ExportRaw writes a tar archive of the objects that a stack's state and its active update are made of: readable ones
// as they are, sealed ones opened, with their secrets as ciphertexts of the service's provider. What cannot be opened
// is in the archive as it is, with ".sealed" after its name. The last file, index.json, says what is wrong with which
// object. One object at a time is in memory. CodeNotFound: there is no such stack.
func (s *Store) ExportRaw(ctx context.Context, name deployments.StackName, to io.Writer) error {
	if err := name.Validate(); err != nil {
		return err
	}
	e := &rawExport{Store: s, name: name, tar: tar.NewWriter(to), index: rawIndex{Stack: name.String(),
		Exported: s.now().UTC(), Faults: []rawFault{}}}
	h, err := e.head(ctx)
	if err != nil {
		return err
	}
	if e.index.Version = h.Version; h.Version > 0 {
		if err := e.checkpoint(ctx, h); err != nil {
			return err
		}
	}
	if h.Active != nil {
		e.index.Active = h.Active.Version
		for _, folder := range rawFolders {
			u := deployments.UpdateName{StackName: name, Version: h.Active.Version}
			if err := e.folder(ctx, stackobjects.UpdateKey(u, folder, "")); err != nil {
				return err
			}
		}
	}
	index, err := json.MarshalIndent(e.index, "", "  ")
	if err == nil {
		err = e.file("index.json", index)
	}
	if err != nil {
		return err
	}
	return e.tar.Close()
}

// head adds the head and returns it. If nobody can read it, it returns one with the newest version that there is.
func (e *rawExport) head(ctx context.Context) (h Head, err error) {
	key := stackobjects.Key(e.name, "head.json")
	o, err := e.objects.Get(ctx, key)
	if errors.Is(err, bucket.ErrAbsent) {
		err = e.absent(ctx, e.name)
		if deployments.CodeOf(err) != deployments.CodeFormat {
			return h, err
		}
	} else if err != nil {
		return h, bucket.Failed(err, "read "+key)
	} else if err = e.add(key, o.Data); err != nil {
		return h, err
	} else if h, err = parseHead(key, o.Data); err == nil {
		if err = e.authentic(e.name, key, o.Data); err == nil {
			e.keys = e.ring(h.ID)
			return h, nil
		}
	}
	e.fault(key, err)
	if h.Version == 0 {
		h.Version, err = e.latestState(ctx)
		return h, err
	}
	return h, nil
}

// latestState returns the newest version of which there is a checkpoint; 0 when there is none.
func (e *rawExport) latestState(ctx context.Context) (int, error) {
	versions, _, err := e.versions(ctx, e.name)
	if err != nil || len(versions) == 0 {
		return 0, err
	}
	return versions[len(versions)-1], nil
}

// checkpoint adds the newest checkpoint as it is stored. One that the service has not written is not unpacked.
func (e *rawExport) checkpoint(ctx context.Context, h Head) error {
	mempool.Drop(ctx)
	key := checkpointKey(e.name, h.Version)
	o, err := e.objects.Get(ctx, key)
	if err != nil {
		return e.unread(ctx, key, bucket.Failed(err, "read "+key))
	}
	switch c := checkpointIn(o); {
	case e.keys == nil: // the head is named
	case !e.attested(h.ID, h.Version, c) && (c.mac != nil || e.Keys.Authenticated()):
		e.fault(key, errors.New("it was not written by this service: it has not its MAC"))
	case h.MAC != "":
		if digest, err := digestOf(c.frames); err != nil {
			e.fault(key, fmt.Errorf("it cannot be unpacked: %w", err))
		} else if digest != h.Digest {
			e.fault(key, fmt.Errorf("its digest is %s, and the head says %s", digest, h.Digest))
		}
	}
	return e.add(key, o.Data)
}

// digestOf returns the digest of the JSON of a checkpoint, of which it has a little at a time in memory.
func digestOf(frames []byte) (string, error) {
	sum, text := sha256.New(), io.Reader(bytes.NewReader(frames))
	if bytes.HasPrefix(frames, zstdMagic) {
		unpacked, err := zstd.NewReader(text, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return "", err
		}
		defer unpacked.Close()
		text = unpacked
	}
	_, err := io.Copy(sum, text)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// folder adds the sealed objects of a folder.
func (e *rawExport) folder(ctx context.Context, prefix string) error {
	q := bucket.Query{Prefix: prefix, Limit: rawPage}
	for more := true; more; {
		l, err := e.objects.List(ctx, q)
		if err != nil {
			return bucket.Failed(err, "list "+prefix)
		}
		for _, key := range l.Keys {
			if err := e.sealed(ctx, key); err != nil {
				return err
			}
			q.After = key
		}
		more = l.More && len(l.Keys) > 0
	}
	return nil
}

// sealed adds what is sealed in an object, or the object if it cannot be opened.
func (e *rawExport) sealed(ctx context.Context, key string) error {
	mempool.Drop(ctx)
	o, err := e.objects.Get(ctx, key)
	if err != nil {
		return e.unread(ctx, key, bucket.Failed(err, "read "+key))
	}
	folder, file := path.Base(path.Dir(key)), path.Base(key)
	plain, err := e.opened(ctx, key, o.Data)
	if err == nil && (folder == "delta" || folder == blobFolder) {
		plain, err = e.encrypted(ctx, plain)
	}
	if err != nil {
		if err := e.unread(ctx, key, err); err != nil {
			return err
		}
		return e.add(key+".sealed", o.Data)
	}
	switch {
	case folder == "delta":
		err = e.deltas(ctx, plain)
	case folder == leases.JournalFolder:
		err = e.journal(ctx, plain)
	case folder == leases.SnapshotFolder && file == "last":
		err = e.snapshot(plain)
	}
	if err := e.unread(ctx, key, err); err != nil {
		return err
	}
	return e.add(key, plain)
}

func (e *rawExport) opened(ctx context.Context, key string, data []byte) ([]byte, error) {
	if e.keys == nil {
		return nil, errors.New("it is not opened, because the head does not vouch for the stack that it is of")
	}
	context := stackobjects.Context(e.name, key)
	if path.Base(path.Dir(key)) == blobFolder {
		context = "blob " + path.Base(key)
	}
	return e.keys.Box.OpenWithin(data, context, func(size int64) error { return mempool.Take(ctx, size) })
}

// deltas reports that a save cannot be read.
func (e *rawExport) deltas(ctx context.Context, plain []byte) error {
	if err := mempool.Take(ctx, rawjson.Cost(plain)); err != nil {
		return err
	}
	var deltas []engine.Delta
	return json.Unmarshal(plain, &deltas)
}

// journal reports that an object of a journal cannot be read, or an entry of it cannot become part of the state.
func (e *rawExport) journal(ctx context.Context, plain []byte) error {
	first, array, _ := bytes.Cut(plain, []byte("\n"))
	var line updates.LogLine
	if err := json.Unmarshal(first, &line); err != nil || line.End {
		return err
	}
	if !json.Valid(array) {
		return errNoJSON
	}
	largest := int64(0)
	for raw := range rawjson.Elements(array) {
		largest = max(largest, rawjson.Cost(raw))
	}
	if err := mempool.Take(ctx, largest); err != nil {
		return err
	}
	for _, err := range journal.Parse(array, journalChecks(e.name)) {
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshot reports that the last whole deployment of a client does not have its digest.
func (e *rawExport) snapshot(plain []byte) error {
	line, deployment, _ := bytes.Cut(plain, []byte("\n"))
	var last leases.Snapshot
	if err := json.Unmarshal(line, &last); err != nil {
		return err
	}
	if digest := sha256Hex(deployment); digest != last.Digest {
		return fmt.Errorf("its digest is %s, and its first line says %s", digest, last.Digest)
	}
	return nil
}

var errNoJSON = errors.New("it is no JSON")

// encrypted returns a text of the plain form in which the secrets are ciphertexts.
func (e *rawExport) encrypted(ctx context.Context, plain []byte) ([]byte, error) {
	if !json.Valid(plain) {
		return nil, fmt.Errorf("%w, so its secrets cannot be found", errNoJSON)
	}
	if err := mempool.Take(ctx, 2*int64(len(plain))); err != nil {
		return nil, err
	}
	return encrypting{stacksecrets.New(e.keys.secrets)}.append(ctx, make([]byte, 0, len(plain)), plain, mostDepth)
}

// unread names an object in the index because of an error, if there is one. An error that says nothing about the
// object ends the export.
func (e *rawExport) unread(ctx context.Context, key string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil || deployments.CodeOf(err) == deployments.CodeUnavailable {
		return err
	}
	e.fault(key, err)
	return nil
}

func (e *rawExport) fault(key string, err error) {
	if len(e.index.Faults) == mostFaults {
		e.index.More++
		return
	}
	e.index.Faults = append(e.index.Faults, rawFault{e.nameOf(key), err.Error()})
}

// nameOf returns the name of an object in the archive: its key without the name of the stack.
func (e *rawExport) nameOf(key string) string {
	return strings.TrimPrefix(key, stackobjects.Key(e.name, ""))
}

func (e *rawExport) add(key string, data []byte) error {
	e.index.Objects++
	return e.file(e.nameOf(key), data)
}

func (e *rawExport) file(name string, data []byte) error {
	err := e.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: e.index.Exported})
	if err == nil {
		_, err = e.tar.Write(data)
	}
	return err
}
