package statestore_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

func checkpointOf(version int) string {
	return fmt.Sprintf("stacks/organization/web/dev/checkpoints/%d.json.zst", version)
}

// versioned returns a bucket with a stack that has the versions 1 and 3, and whose update 2 ended without a state.
func versioned(t *testing.T, objects bucket.Objects) *statestore.Store {
	t.Helper()
	s := opened(t, objects, statestore.Options{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.CreateStack(t.Context(), dev, nil))
	imports := func() {
		version, err := s.Import(t.Context(), statestore.Exchange{Stack: dev},
			deployment([]string{rootState, thingState}, nil))
		must(err)
		must(s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(version), Status: "succeeded"}))
	}
	imports()
	claim, err := s.Claim(t.Context(), statestore.Claimant{Update: up(2), Writer: "w"})
	must(err)
	must(s.Commit(t.Context(), claim, statestore.Written{}))
	must(s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(2), Status: "cancelled"}))
	imports()
	return s
}

// kept lists the versions that a stack's history shows as kept.
func kept(t *testing.T, s *statestore.Store) (versions []string) {
	t.Helper()
	list, err := s.Updates.History(t.Context(), dev, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if info.Kept {
			versions = append(versions, info.Update.Version)
		}
	}
	return versions
}

// written is what a bucket has of the versions 1 and 3.
type written struct {
	first, third []byte // as they are stored
	plain        []byte // of version 1
}

func (w written) forged() []byte { return bytes.ReplaceAll(w.plain, []byte(`"i"`), []byte(`"forged"`)) }

func TestACheckpointThatTheServiceNeverWroteIsNotBelieved(t *testing.T) {
	writer, _ := zstd.NewWriter(nil)
	reader, _ := zstd.NewReader(nil)
	pack := func(data []byte) []byte { return writer.EncodeAll(data, nil) }
	for name, c := range map[string]struct {
		version int
		content func(written) []byte
	}{
		"text where no state was":            {2, func(w written) []byte { return w.forged() }},
		"what is compressed, where none was": {2, func(w written) []byte { return pack(w.forged()) }},
		"a state with the MAC of another": {2, func(w written) []byte {
			return append(pack(w.forged()), w.first[len(w.first)-40:]...)
		}},
		"another version, where none was":     {2, func(w written) []byte { return w.first }},
		"text that is older than the newest":  {1, func(w written) []byte { return w.forged() }},
		"a later version in an earlier place": {1, func(w written) []byte { return w.third }},
		"an earlier version without its MAC":  {1, func(w written) []byte { return pack(w.plain) }},
		"text in place of the newest":         {3, func(w written) []byte { return w.forged() }},
		"an earlier version as the newest":    {3, func(w written) []byte { return w.first }},
		"what is after the newest":            {4, func(w written) []byte { return w.forged() }},
	} {
		t.Run(name, func(t *testing.T) {
			objects := &bucket.Memory{}
			versioned(t, objects)
			w := written{first: get(t, objects, checkpointOf(1)), third: get(t, objects, checkpointOf(3))}
			var err error
			if w.plain, err = reader.DecodeAll(w.first, nil); err != nil { // the frame with the MAC is skipped
				t.Fatal(err)
			}
			put(t, objects, checkpointOf(c.version), c.content(w))
			s := opened(t, objects, statestore.Options{})
			_, opens := s.Checkpoint(t.Context(), dev, c.version, deployments.SecretsProvider{})
			_, exports := s.Export(t.Context(), statestore.Exchange{Stack: dev}, c.version, false)
			for _, err := range []error{opens, exports} {
				if deployments.CodeOf(err) != deployments.CodeFormat || !strings.Contains(err.Error(), "not written by") {
					t.Errorf("it is read: %v", err)
				}
			}
			if _, err := s.Restore(t.Context(), statestore.Exchange{Stack: dev}, c.version); err == nil {
				t.Error("it is restored")
			}
			if c.version == 2 && slices.Contains(kept(t, s), "2") {
				t.Error("it is shown as kept")
			}
		})
	}
}

func TestAStackWhoseNewestStateIsForgedIsNeitherRenamedNorSettled(t *testing.T) {
	objects := &bucket.Memory{}
	versioned(t, objects)
	put(t, objects, checkpointOf(3), []byte(`{"version":3,"deployment":{"pending_operations":[{}]}}`))
	s := opened(t, objects, statestore.Options{})
	to := deployments.StackName{Organization: "organization", Project: "web", Stack: "other"}
	if err := s.RenameStack(t.Context(), dev, to); deployments.CodeOf(err) != deployments.CodeFormat {
		t.Errorf("it is renamed: %v", err)
	}
	if left, err := s.LeftPending(t.Context(), up(3)); err != nil || left.Operations > 0 {
		t.Errorf("it is settled: %+v, %v", left, err)
	}
	if h, err := s.Head(t.Context(), dev); err != nil || h.Active != nil || h.Peer != "" {
		t.Errorf("the head is %+v, %v", h, err)
	}
}

func TestAStateStaysBelievedHoweverOldItIsAndWhateverItsStackIsCalled(t *testing.T) {
	objects := &bucket.Memory{}
	s := versioned(t, objects)
	x := statestore.Exchange{Stack: dev}
	for range 120 {
		if _, err := s.Import(t.Context(), x, deployment([]string{rootState, thingState}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	h, err := s.Head(t.Context(), dev)
	if err != nil || len(h.States) != 2 || h.States[1] != [2]int{3, 123} {
		t.Errorf("the head has %v, %v", h.States, err)
	}
	other := deployments.StackName{Organization: "organization", Project: "web", Stack: "other"}
	if err := s.RenameStack(t.Context(), dev, other); err != nil {
		t.Fatal(err)
	}
	for _, version := range []int{1, 3, 123, 124} {
		if _, err := opened(t, objects, statestore.Options{}).Checkpoint(t.Context(), other, version,
			deployments.SecretsProvider{}); err != nil {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestWhatAPersonHasRepairedIsBelievedOnceItIsAdopted(t *testing.T) {
	objects := &bucket.Memory{}
	s := versioned(t, objects)
	exported, err := s.Export(t.Context(), statestore.Exchange{Stack: dev}, 3, false)
	if err != nil {
		t.Fatal(err)
	}
	repaired := []byte(fmt.Sprintf(`{"version":%d, "deployment":%s}`, exported.Version,
		bytes.ReplaceAll(exported.Deployment, []byte(`"i"`), []byte(`"repaired"`))))
	put(t, objects, checkpointOf(2), repaired)
	put(t, objects, checkpointOf(3), repaired)
	s = opened(t, objects, statestore.Options{})
	if err := s.AdoptStack(t.Context(), dev); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Checkpoint(t.Context(), dev, 3, deployments.SecretsProvider{}); err != nil ||
		c.States()[1].ID != "repaired" {
		t.Errorf("got %v", err)
	}
	if _, err := s.Checkpoint(t.Context(), dev, 2, deployments.SecretsProvider{}); deployments.CodeOf(err) !=
		deployments.CodeFormat {
		t.Errorf("another version is adopted with it: %v", err)
	}
}

// TestABucketThatWasNeverAuthenticatedIsReadAndThenAdopted has what an older release wrote: a head without a MAC and
// checkpoints without one.
func TestABucketThatWasNeverAuthenticatedIsReadAndThenAdopted(t *testing.T) {
	objects := &bucket.Memory{}
	versioned(t, objects)
	for _, version := range []int{1, 3} {
		whole := get(t, objects, checkpointOf(version))
		put(t, objects, checkpointOf(version), whole[:len(whole)-40])
	}
	const head = "stacks/organization/web/dev/head.json"
	without := slices.DeleteFunc(strings.Split(string(get(t, objects, head)), "\n"), func(line string) bool {
		return strings.Contains(line, `"mac"`)
	})
	put(t, objects, head, []byte(strings.Replace(strings.Join(without, "\n"), "\",\n}", "\"\n}", 1)))
	if err := objects.Delete(t.Context(), ringObject); err != nil {
		t.Fatal(err)
	}
	check := func(s *statestore.Store) {
		t.Helper()
		for _, version := range []int{1, 3} {
			if _, err := s.Checkpoint(t.Context(), dev, version, deployments.SecretsProvider{}); err != nil {
				t.Errorf("version %d: %v", version, err)
			}
		}
		if got := fmt.Sprint(kept(t, s)); got != "[3 1]" {
			t.Errorf("%s are kept", got)
		}
	}
	before, err := statestore.New(objects, statestore.Options{Master: storetest.Master})
	if err != nil {
		t.Fatal(err)
	}
	check(before)
	check(opened(t, objects, statestore.Options{Adopt: true}))
	put(t, objects, checkpointOf(2), []byte(`{"version":3,"deployment":{}}`))
	s := opened(t, objects, statestore.Options{})
	check(s)
	if _, err := s.Checkpoint(t.Context(), dev, 2, deployments.SecretsProvider{}); deployments.CodeOf(err) !=
		deployments.CodeFormat {
		t.Errorf("a state is believed after that: %v", err)
	}
}

func TestACheckpointOfAnotherWriterIsNotUnpacked(t *testing.T) {
	objects := &bucket.Memory{}
	versioned(t, objects)
	right := get(t, objects, checkpointOf(3))
	frame := right[len(right)-40:]
	for name, content := range map[string][]byte{
		"what cannot be unpacked": {0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff}, "with a MAC": append([]byte{0x28, 0xb5, 0x2f, 0xfd,
			0xff, 0xff}, frame...), "with a frame before it": append(slices.Clone(frame), right...),
	} {
		put(t, objects, checkpointOf(3), content)
		_, err := opened(t, objects, statestore.Options{}).Checkpoint(t.Context(), dev, 3, deployments.SecretsProvider{})
		if deployments.CodeOf(err) != deployments.CodeFormat || !strings.Contains(err.Error(), "not written by") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
