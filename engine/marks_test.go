package engine

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/internal/testkit/filltest"
)

// TestEveryFieldOfAMarkIsStored sets every field of a mark: a run that was suspended must know it, or a create could
// be repeated.
func TestEveryFieldOfAMarkIsStored(t *testing.T) {
	var full mark
	filltest.Fill(t, reflect.ValueOf(&full).Elem())
	was := map[urn.URN]*mark{"urn:pulumi:dev::proj::test:x:R::name": &full}
	data, err := json.Marshal(storeMarks(was))
	if err != nil {
		t.Fatal(err)
	}
	var stored storedMarks
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	var r Run
	stored.load(&r)
	if !reflect.DeepEqual(r.marks, was) {
		t.Errorf("%+v was stored as %s", full, data)
	}
}

// TestARunOfAnEarlierBuildIsResumed reads the form in which builds before marks suspended a run: builds of one revision
// resume each other's runs.
func TestARunOfAnEarlierBuildIsResumed(t *testing.T) {
	const u = "urn:pulumi:dev::proj::test:x:R::name"
	const stored = `{"memory":{"Phase":2,"Epoch":1,"NextOp":3,"Entries":null,"Ops":{},"Compared":{},"Deletions":null,
		"Done":{"` + u + `":{"Digest":"g","Key":"o3","Kind":"create","Stables":null}},"Replaced":{},
		"Seeds":{"` + u + `":"c2VlZA=="},"Made":{"` + u + `":2},"Doubtful":{"` + u + `":true},"Targeted":{},
		"Aliased":{"old":"` + u + `"},"AliasOf":{"` + u + `":"old"},"Skipped":{"` + u + `":true},"Kept":{},
		"Wanted":["` + u + `"],"Changes":{"create":1}}}`
	r, err := Resume(Goal{Kind: KindUp, Project: "proj", Stack: "dev"}, nil, nil, []byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	want := mark{
		Done: &finished{Digest: "g", Key: "o3", Kind: StepCreate}, Seed: []byte("seed"), Creates: 2, Undecided: true,
		inEpoch: inEpoch{Claims: "old", LeftOut: true, Wanted: true},
	}
	if got := r.marked(u); !reflect.DeepEqual(got, want) || r.marked("old").ClaimedBy != u {
		t.Errorf("it knows %+v, not %+v", got, want)
	}
}
