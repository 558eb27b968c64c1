package journal

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
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
			parsed, err := Parse([]byte(fmt.Sprintf(`[{"sequenceID":%d,%s}]`, len(entries)+1, expand(line))))
			if err != nil {
				t.Fatalf("line %d: %v", number+1, err)
			}
			entries = append(entries, parsed...)
		}
	}
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
	state, err := Replay(base, shuffled)
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
		if _, err := Parse([]byte(text)); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s is answered %v", text, err)
		}
	}
}

// with returns a resource that has also a field.
func with(field, value string) string {
	return strings.TrimSuffix(resourceOf("a"), "}") + fmt.Sprintf(`,%q:%s}`, field, value)
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
	f.Fuzz(func(_ *testing.T, data []byte) {
		var entries []Entry
		if json.Unmarshal(data, &entries) == nil {
			_, _ = Replay(base, entries)
		}
		if entries, err := Parse(data); err == nil {
			_, _ = Replay(base, entries)
		}
	})
}
