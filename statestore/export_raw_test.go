package statestore

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/deployctl/deployctl/statestore/stacksecrets"
	"github.com/deployctl/deployctl/statestore/updates"
)

// rawOf exports the stack raw, and returns the files of the archive, their names in order and what is wrong with whom.
func (j *journaling) rawOf() (files map[string]string, names []string, faults map[string]string) {
	j.Helper()
	var archive bytes.Buffer
	j.ok(j.store.ExportRaw(j.Context(), j.lease.Update.StackName, &archive))
	files, faults = map[string]string{}, map[string]string{}
	for r := tar.NewReader(&archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		j.ok(err)
		text, err := io.ReadAll(r)
		j.ok(err)
		files[header.Name], names = string(text), append(names, header.Name)
	}
	var index rawIndex
	j.ok(json.Unmarshal([]byte(files["index.json"]), &index))
	if index.Objects != len(names)-1 {
		j.Errorf("the index counts %d of the objects %v", index.Objects, names)
	}
	for _, f := range index.Faults {
		faults[f.Object] = f.Reason
	}
	return files, names, faults
}

// imported gives the stack a first version, before the update that a client executes.
func imported(t *testing.T) *journaling {
	t.Helper()
	j := newJournaling(t)
	name := j.lease.Update.StackName
	_, err := j.store.FinishLease(t.Context(), j.lease.Update, "")
	j.ok(err)
	version, err := j.store.Import(t.Context(), Exchange{Stack: name}, apitype.UntypedDeployment{Version: 3,
		Deployment: json.RawMessage(`{"manifest":{"time":"2026-01-02T03:04:05Z"},"resources":[{"urn":` +
			`"urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev","type":"pulumi:pulumi:Stack"}]}`)})
	j.ok(err)
	u := deployments.UpdateName{StackName: name, Version: fmt.Sprint(version + 1)}
	claim, err := j.store.Claim(t.Context(), Claimant{Update: u, Writer: leases.Writer})
	j.ok(err)
	j.lease = deployments.Leased{Update: u, Fence: claim.Fence}
	return j
}

const hidden = "a password"

// secretText is the plain form of a secret.
var secretText = `{"` + resource.SigKey + `":"` + resource.SecretSig + `","value":{"p":"` + hidden + `"}}`

func TestWhatNothingCanRecoverIsExportedAsItIsWithItsSecretsEncrypted(t *testing.T) {
	j := imported(t)
	u := j.lease.Update
	write := func(folder, name, text string) {
		j.ok(j.store.stacks.Put(t.Context(), u.StackName, stackobjects.UpdateKey(u, folder, name), []byte(text)))
	}
	j.put(1, updates.LogSize{}, "["+made(1, 1)+"]")
	j.put(2, updates.LogSize{}, `[{"sequenceID":2,"kind":"x"}]`)
	j.put(3, updates.LogSize{}, `[`)
	key := stackobjects.UpdateKey(u, leases.JournalFolder, "00000004")
	_, err := j.store.objects.Put(t.Context(), key, []byte("planted"), bucket.Condition{})
	j.ok(err)
	const delta = `[{"seq":1,"kind":"set","state":{"inputs":{"d":"x","v":%s}}}]`
	output := `{"` + resource.SigKey + `":"` + resource.OutputValueSig + `","secret":true,"value":"` + hidden + `"}`
	deep := strings.Repeat(`{"a":`, 200) + secretText + strings.Repeat("}", 200)
	write("delta", "00000001", fmt.Sprintf(delta, `{"a":[`+secretText+`,`+output+`,{}],"b":`+deep+`,"secret":true}`))
	write("delta", "00000002", `{"kind":`+secretText+`}`)
	write("delta", "00000003", secretText+"x")
	r, err := j.store.stackKeysOf(t.Context(), u.StackName)
	j.ok(err)
	j.ok(j.store.stacks.PutBlob(t.Context(), r.Stack, stackobjects.UpdateKey(u, blobFolder, "abc"), []byte(secretText)))
	write(leases.SnapshotFolder, "last", `{"sequence":1,"digest":"00"}`+"\n{}")
	request := stackobjects.UpdateKey(u, "update")
	j.ok(j.store.stacks.Put(t.Context(), u.StackName, request, []byte(secretText)))

	files, names, faults := j.rawOf()
	at := "updates/" + u.Version + "/"
	want := []string{"head.json", "checkpoints/" + strings.TrimPrefix(checkpointKey(u.StackName, 2), stackobjects.Key(
		u.StackName,
		"checkpoints", "")), at + "delta/00000001", at + "delta/00000002", at + "delta/00000003.sealed", at + "blob/abc",
		at + "journal/00000001", at + "journal/00000002", at + "journal/00000003", at + "journal/00000004.sealed",
		at + "snapshot/last", "index.json"}
	if !slices.Equal(names, want) {
		t.Errorf("the archive has %v, want %v", names, want)
	}
	for name, reason := range map[string]string{
		"delta/00000002": "cannot unmarshal", "delta/00000003": "no JSON", "journal/00000002": "kind",
		"journal/00000003": "no JSON", "journal/00000004": "not a sealed value", "snapshot/last": "its digest is",
	} {
		if !strings.Contains(faults[at+name], reason) {
			t.Errorf("of %s the index says %q", name, faults[at+name])
		}
		delete(faults, at+name)
	}
	if len(faults) > 0 {
		t.Errorf("the index also has %v", faults)
	}
	if got := files[at+"journal/00000002"]; !strings.HasSuffix(got, `[{"sequenceID":2,"kind":"x"}]`) {
		t.Errorf("the malformed object has %s", got)
	}
	for name, text := range files {
		if strings.Contains(text, hidden) {
			t.Errorf("%s shows a secret: %s", name, text)
		}
	}
	var secret struct{ Ciphertext string }
	j.ok(json.Unmarshal([]byte(files[at+"blob/abc"]), &secret))
	if plain, err := stacksecrets.New(r.secrets).DecryptValue(t.Context(), secret.Ciphertext); err != nil ||
		plain != `{"p":"`+hidden+`"}` {
		t.Errorf("the ciphertext is of %q, %v", plain, err)
	}
}

// TestARawExportNamesWhatTheServiceHasNotWritten plants and removes readable objects.
func TestARawExportNamesWhatTheServiceHasNotWritten(t *testing.T) {
	head := func(j *journaling) string { return stackobjects.Key(j.lease.Update.StackName, "head.json") }
	newest := func(j *journaling) string { return checkpointKey(j.lease.Update.StackName, 2) }
	edit := func(j *journaling, key, from, to string) {
		o, err := j.objects.Get(t.Context(), key)
		j.ok(err)
		_, err = j.objects.Put(t.Context(), key, bytes.Replace(o.Data, []byte(from), []byte(to), 1), bucket.Condition{})
		j.ok(err)
	}
	for name, c := range map[string]struct {
		damage func(*journaling)
		reason string // for the head, or the checkpoint
		opened bool
	}{
		"a head that was edited": {func(j *journaling) { edit(j, head(j), `"resources": 1`, `"resources": 2`) },
			"not written by this service", false},
		"a head that is no JSON": {func(j *journaling) { edit(j, head(j), `{`, ``) }, "is damaged", false},
		"no head": {func(j *journaling) { j.ok(j.objects.Delete(t.Context(), head(j))) }, "head.json is missing",
			false},
		"another checkpoint": {func(j *journaling) {
			_, err := j.objects.Put(t.Context(), newest(j), []byte("{}"), bucket.Condition{})
			j.ok(err)
		}, "has not its MAC", true},
		"a checkpoint of the service, which is not the newest": {func(j *journaling) {
			h, err := j.store.Head(t.Context(), j.lease.Update.StackName)
			j.ok(err)
			_, err = j.objects.Put(t.Context(), newest(j), j.store.packed(h.ID, 2, []byte("{}")), bucket.Condition{})
			j.ok(err)
		}, "the head says", true},
		"no checkpoint": {func(j *journaling) { j.ok(j.objects.Delete(t.Context(), newest(j))) }, "no such object", true},
	} {
		t.Run(name, func(t *testing.T) {
			j := imported(t)
			j.put(1, updates.LogSize{}, "["+made(1, 1)+"]")
			c.damage(j)
			files, _, faults := j.rawOf()
			if all := fmt.Sprint(faults); !strings.Contains(all, c.reason) {
				t.Errorf("the index has %s", all)
			}
			entry := "updates/" + j.lease.Update.Version + "/journal/00000001"
			if _, opened := files[entry]; opened != c.opened {
				t.Errorf("of the journal it has %v, and opens it: %v", files[entry+".sealed"] != "", opened)
			}
		})
	}
	j := newJournaling(t)
	absent := j.lease.Update.StackName
	absent.Stack = "absent"
	if err := j.store.ExportRaw(t.Context(), absent, io.Discard); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("a stack that is not there: %v", err)
	}
}

// spare takes, whenever something is written, what one object leaves of a pool.
type spare struct {
	*journaling
	pool *mempool.Pool
}

func (s spare) Write(p []byte) (int, error) {
	c := s.pool.Claim("other", nil)
	defer c.Release()
	return len(p), c.Take(s.Context(), 11<<20, 0)
}

func TestARawExportHasTheMemoryOfOneObjectAtATime(t *testing.T) {
	j := newJournaling(t)
	for n := 1; n <= 8; n++ {
		j.put(n, updates.LogSize{}, "["+made(n, 1<<20)+"]")
	}
	export := func(size int64) error {
		pool := mempool.New(size)
		own := pool.Claim("acme", nil)
		defer own.Release()
		return j.store.ExportRaw(mempool.With(context.WithoutCancel(t.Context()), own, 0), j.lease.Update.StackName,
			spare{j, pool})
	}
	j.ok(export(16 << 20))
	if err := export(12 << 20); !errors.Is(err, mempool.ErrBusy) { // it takes more than one MiB
		t.Errorf("it takes nothing: %v", err)
	}
}

// FuzzEncrypted takes texts of any form: what comes out is as much JSON, without a secret.
func FuzzEncrypted(f *testing.F) {
	for _, text := range []string{secretText, `{"a":[` + secretText + `,1, "x" ]}`, `{ }`, `[[],{}]`, `"a"`, ` 1 `,
		strings.Repeat("[", 200) + secretText + strings.Repeat("]", 200), `{"secret":true,"value":"x"}`} {
		f.Add([]byte(text))
	}
	store, err := New(&bucket.Memory{}, Options{Master: make([]byte, 32)})
	if err != nil {
		f.Fatal(err)
	}
	keys := store.ring("id")
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		out, err := encrypting{stacksecrets.New(keys.secrets)}.append(t.Context(), nil, text, mostDepth)
		if err != nil || !json.Valid(out) {
			t.Fatalf("%s becomes %s, %v", text, out, err)
		}
		sign := `"` + resource.SigKey + `"`
		if bytes.Contains(text, []byte(sign)) || bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) >= mostDepth {
			if bytes.Contains(text, []byte(secretText)) && bytes.Contains(out, []byte(hidden)) {
				t.Errorf("%s becomes %s", text, out)
			}
			return
		}
		var before, after any
		if json.Unmarshal(text, &before) == nil && json.Unmarshal(out, &after) == nil &&
			fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%s becomes %s", text, out)
		}
	})
}
