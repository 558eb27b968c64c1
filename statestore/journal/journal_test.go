package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// play replays a transcript: lines "base NAME…", entries as JSON with short resources, and "> " lines that say what the
// state is.
func play(t *testing.T, text string) {
	t.Helper()
	base := State{}
	var entries []Entry
	for number, line := range strings.Split(text, "\n") {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "", "#":
		case "base":
			base = State{}
			entries = nil
			for _, name := range strings.Fields(rest) {
				base.Resources = append(base.Resources, json.RawMessage(resourceOf(name)))
			}
		case "pending":
			base.Pending = append(base.Pending, json.RawMessage(
				fmt.Sprintf(`{"type":%q,"resource":%s}`, strings.Fields(rest)[0], resourceOf(strings.Fields(rest)[1]))))
		case ">":
			if got := describe(t, base, entries); got != rest {
				t.Errorf("line %d: the state is %q, not %q", number+1, got, rest)
			}
		default:
			parsed, err := parseAll([]byte(fmt.Sprintf(`[{"sequenceID":%d,%s}]`, len(entries)+1, expand(line))))
			if err != nil {
				t.Fatalf("line %d: %v", number+1, err)
			}
			entries = append(entries, parsed...)
		}
	}
}

// checks are what the checks of a store come to here.
var checks = Checks{
	Resource: checkResource,
	Operation: func(raw json.RawMessage) error {
		var operation struct {
			Resource json.RawMessage
			Type     string
		}
		if err := json.Unmarshal(raw, &operation); err != nil || !slices.Contains(Operations, operation.Type) {
			return errors.New("its operation is not one")
		}
		return checkResource(operation.Resource)
	},
}

func checkResource(raw json.RawMessage) error {
	var r struct {
		references
		Custom bool
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	return token.CheckResource(r.URN, r.Type, r.Custom, r.Provider)
}

// parseAll returns the entries of an array, or the error.
func parseAll(data []byte) (entries []Entry, err error) {
	for e, err := range Parse(data, checks) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// replayed returns the state that entries make of a base, in whatever order they are.
func replayed(base State, entries []Entry) (State, error) {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	entries = slices.CompactFunc(entries, func(a, b Entry) bool { return a.Sequence == b.Sequence })
	r := NewReplay(base)
	for _, e := range entries {
		if err := r.Add(e); err != nil {
			return State{}, err
		}
	}
	state, err := r.State()
	if err == nil {
		err = measured(r, state)
	}
	return state, err
}

// measured reports that a replay has counted another size than that of its state. Marks and references, which are
// written at the end, may change the bytes.
func measured(r *Replay, state State) error {
	size := Size{Resources: len(state.Resources)}
	for _, it := range slices.Concat(r.made, r.base) {
		size.Bytes, size.References = size.Bytes+len(it.raw), size.References+References(it.raw)
	}
	for _, raw := range state.Pending {
		size.Bytes, size.References = size.Bytes+len(raw), size.References+References(raw)
	}
	for _, raw := range state.Extensions {
		size.Bytes += len(raw)
	}
	if counted := r.Size(); counted != size {
		return fmt.Errorf("it has counted %+v, and there is %+v", counted, size)
	}
	return nil
}

// resourceOf returns the JSON of a resource "NAME" or "NAME:FIELD=NAME,NAME", whose URN has the name.
func resourceOf(text string) string {
	name, fields, _ := strings.Cut(text, ":")
	out := fmt.Sprintf(`{"urn":%q,"type":"t:m:T","outputs":{"n":12345678901234567890},"unknown":true`, urnOf(name))
	for field := range strings.SplitSeq(fields, ";") {
		key, values, ok := strings.Cut(field, "=")
		if !ok {
			continue
		}
		var urns []string
		for value := range strings.SplitSeq(values, ",") {
			urns = append(urns, fmt.Sprintf("%q", urnOf(value)))
		}
		if key == "parent" || key == "deletedWith" {
			out += fmt.Sprintf(",%q:%s", key, urns[0])
		} else {
			out += fmt.Sprintf(",%q:[%s]", key, strings.Join(urns, ","))
		}
	}
	return out + "}"
}

func urnOf(name string) string { return "urn:pulumi:dev::shop::t:m:T::" + name }

// expand replaces <NAME…> by the JSON of a resource.
func expand(line string) string {
	for {
		before, rest, ok := strings.Cut(line, "<")
		if !ok {
			return line
		}
		name, after, _ := strings.Cut(rest, ">")
		line = before + resourceOf(name) + after
	}
}

// describe returns the names of the resources of a state, with their marks and references, and its pending operations.
// The order in which entries come, and repeated ones, must not matter.
func describe(t *testing.T, base State, entries []Entry) string {
	t.Helper()
	shuffled := slices.Concat(entries, entries)
	random := rand.New(rand.NewPCG(1, uint64(len(entries))))
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	state, err := replayed(base, shuffled)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, raw := range state.Resources {
		var r struct {
			references
			Delete, PendingReplacement, Unknown bool
			Outputs                             struct{ N json.Number }
		}
		if err := json.Unmarshal(raw, &r); err != nil || !r.Unknown || r.Outputs.N != "12345678901234567890" {
			t.Fatalf("%s is not as it was written: %v", raw, err)
		}
		word := short(string(r.URN))
		if r.Delete {
			word = "-" + word
		}
		if r.PendingReplacement {
			word = "~" + word
		}
		for _, d := range r.Dependencies {
			word += "," + short(string(d))
		}
		if r.Parent != "" {
			word += "^" + short(string(r.Parent))
		}
		words = append(words, word)
	}
	for _, raw := range state.Pending {
		var operation struct {
			Type     string
			Resource references
		}
		if err := json.Unmarshal(raw, &operation); err != nil {
			t.Fatal(err)
		}
		words = append(words, operation.Type+"="+short(string(operation.Resource.URN)))
	}
	return strings.Join(words, " ")
}

func short(urn string) string { return urn[strings.LastIndex(urn, "::")+2:] }

func TestJournalsAreReplayed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, string(text))
		})
	}
}

func TestWhatIsNoJournalIsRefused(t *testing.T) {
	for _, text := range []string{`{}`, `[{"kind":11}]`, `[{"kind":-1}]`, `[{"kind":1,"state":{"type":"t"}}]`,
		`[{"kind":0,"operation":{"type":"creating"}}]`, `[{"kind":1,"state":[]}]`, `[{"kind":5,"newSnapshot":{"resources":[{}]}}]`,
		`[{"kind":10,"states":[{"urn":"u"}]}]`,
		`[{"kind":1,"state":{"urn":"u","type":"t:m:T"}}]`, `[{"kind":1,"state":{"urn":"urn:pulumi:::::::","type":"t:m:T"}}]`,
		`[{"kind":1,"state":` + with("custom", `true,"type":"short"`) + `}]`,
		`[{"kind":1,"state":` + with("provider", `"no reference"`) + `}]`,
		`[{"kind":1,"state":` + with("dependencies", `"x"`) + `}]`,
		`[{"kind":5,"newSnapshot":{"resources":[null]}}]`, `[{"kind":10,"states":[null]}]`,
		`[{"kind":5,"newSnapshot":{"pending_operations":[{"type":"creating","resource":null}]}}]`,
		`[{"kind":10,"baseStatePatches":[{"index":0,"state":null}]}]`, `[{"kind":10,"newStatePatches":[{"operationID":1}]}]`,
		`[{"kind":0,"operation":{"type":"painting","resource":` + resourceOf("a") + `}}]`,
	} {
		if _, err := parseAll([]byte(text)); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s is answered %v", text, err)
		}
	}
}

// with returns a resource that has also a field.
func with(field, value string) string {
	return strings.TrimSuffix(resourceOf("a"), "}") + fmt.Sprintf(`,%q:%s}`, field, value)
}

// TestOnlySomeEntriesChangeTheWholeBase bounds the work of a replay.
func TestOnlySomeEntriesChangeTheWholeBase(t *testing.T) {
	r := NewReplay(State{})
	for n := range mostRebuilds {
		if err := r.Add(Entry{Sequence: int64(n), Kind: apitype.JournalEntryKindRebuiltBaseState}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Add(Entry{Kind: apitype.JournalEntryKindStateMigration}); err == nil {
		t.Error("one more is replayed")
	}
}

// TestAMigrationGivesAResourceOnePlace has a small entry name a large resource many times.
func TestAMigrationGivesAResourceOnePlace(t *testing.T) {
	base := State{Resources: []json.RawMessage{json.RawMessage(resourceOf("a"))}}
	entries, err := parseAll([]byte(`[{"sequenceID":1,"kind":10,"states":[` + resourceOf("b") + `],"layout":[{"baseIndex":0},` +
		strings.Repeat(`{"stateIndex":0},{"baseIndex":0},`, 1000) + `{"stateIndex":0}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if state, err := replayed(base, entries); err != nil || len(state.Resources) != 2 {
		t.Errorf("%d resources: %v", len(state.Resources), err)
	}
}

// FuzzReplay replays whatever is an array of entries, also what Parse rejects: a state or an error, and no panic.
func FuzzReplay(f *testing.F) {
	f.Add([]byte(`[{"kind":1,"operationID":1,"sequenceID":1,"state":` + resourceOf("a") + `,"removeOld":0}]`))
	f.Add([]byte(`[{"kind":10,"layout":[{"baseIndex":5},{"stateIndex":0}],"states":[` + resourceOf("a") + `]}]`))
	f.Add([]byte(`[{"kind":7},{"kind":3,"removeNew":9},{"kind":5}]`))
	f.Add([]byte(`[{"kind":5,"newSnapshot":{"resources":[null]},"sequenceID":1},{"kind":1,"sequenceID":2,"deleteOld":0}]`))
	f.Add([]byte(`[{"kind":5,"newSnapshot":{"resources":[` + with("aliases", `["old"]`) + `,` +
		strings.Replace(resourceOf("b"), "urn:pulumi:", "", 1) + `]},"sequenceID":1}]`))
	f.Add([]byte(`[{"kind":1,"operationID":1,"state":{"urn":"u","type":"t","aliases":["v"]}},` +
		`{"kind":1,"sequenceID":2,"operationID":2,"state":{"urn":"w","type":"t","parent":"v"}}]`))
	f.Add([]byte(`[{"kind":10,"layout":[{"baseIndex":0},{"stateIndex":0}],"states":[null],` +
		`"baseStatePatches":[{"index":0,"state":null}],"newStatePatches":[{"operationID":1,"state":null}]},` +
		`{"kind":1,"sequenceID":2,"pendingReplacementOld":0,"deleteOld":1}]`))
	f.Add([]byte(`[{"kind":2,"isRefresh":true,"removeOld":0},{"kind":8,"sequenceID":3}]`))
	base := State{Resources: []json.RawMessage{
		json.RawMessage(resourceOf("x:aliases=old")), json.RawMessage(resourceOf("y:parent=old")),
	}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var entries []Entry
		if json.Unmarshal(data, &entries) == nil {
			_, _ = replayed(base, entries)
		}
		entries, err := parseAll(data)
		if err != nil {
			return
		}
		if _, err := replayed(base, entries); err != nil && !strings.Contains(err.Error(), "changes the whole base") {
			t.Errorf("what Parse accepts cannot be replayed: %v", err)
		}
	})
}
