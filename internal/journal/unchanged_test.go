package journal

import "testing"

func TestOnlyTheEndsOfUnchangedStepsAreNotWaitedFor(t *testing.T) {
	const same, sameEnds = `{"kind":0,"operationID":1}`, `{"kind":1,"operationID":1,"removeOld":0,"state":{"urn":"u","type":"t"}}`
	const create = `{"kind":0,"operationID":2,"operation":{"type":"creating","resource":{"urn":"u","type":"t"}}}`
	const createEnds = `{"kind":1,"operationID":2,"state":{"urn":"u","type":"t"}}`
	const refreshEnds = `{"kind":1,"operationID":1,"state":{"urn":"u","type":"t"},"removeOld":0,"isRefresh":true}`
	const deleteEnds = `{"kind":1,"operationID":1,"removeOld":0}`
	for name, c := range map[string]struct {
		batches []string
		want    bool // of the last batch
	}{
		"a step in one batch":                  {[]string{same + "," + sameEnds}, true},
		"a step in two batches":                {[]string{same, sameEnds}, true},
		"a begin, which may be of a refresh":   {[]string{same}, false},
		"the end of a refresh":                 {[]string{same, refreshEnds}, false},
		"the end of a create":                  {[]string{create, createEnds}, false},
		"an unchanged step beside a create":    {[]string{same + "," + sameEnds + "," + create}, false},
		"an end that was never begun":          {[]string{sameEnds}, false},
		"an end for the second time":           {[]string{same, sameEnds, sameEnds}, false},
		"a step that leaves nothing":           {[]string{same, deleteEnds}, false},
		"the secrets provider":                 {[]string{same, sameEnds + `,{"kind":6}`}, false},
		"an unchanged step beside one to come": {[]string{same + "," + sameEnds + `,{"kind":0,"operationID":3}`}, true},
	} {
		var u Unchanged
		got := false
		for _, batch := range c.batches {
			entries, err := Parse([]byte("[" + batch + "]"))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = u.Ends(entries)
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
