package pulumiapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestAPageOfAListIsAnsweredWhateverItsNumbersAre(t *testing.T) {
	b := newBench(t)
	for n := 1; n <= 5; n++ {
		info := deployments.UpdateInfo{Update: deployments.UpdateName{StackName: dev, Version: fmt.Sprint(n)}, Kind: "up"}
		if err := b.store.Updates.PutInfo(t.Context(), info); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		"": "[5 4 3 2 1]", "?pageSize=2": "[5 4]", "?pageSize=2&page=2": "[3 2]", "?pageSize=2&page=3": "[1]",
		"?pageSize=2&page=4": "[]", "?pageSize=0&page=0": "[5 4 3 2 1]",
		"?pageSize=4611686018427387904&page=3": "[]", "?pageSize=9223372036854775807&page=3": "[]",
		"?pageSize=100&page=9223372036854775807": "[]", "?pageSize=99999999999999999999": "[5 4 3 2 1]",
	} {
		var answer apitype.GetHistoryResponse
		if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev/updates"+query,
			"token viewer", "")), &answer); err != nil {
			t.Fatal(err)
		}
		got := []int{}
		for _, u := range answer.Updates {
			got = append(got, u.Version)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%q lists %v, not %s", query, got, want)
		}
		b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev/deployments"+query, "token viewer", "")
	}
}

func TestWhatIsNoPageIsRefused(t *testing.T) {
	b := newBench(t)
	for _, query := range []string{"?page=-1", "?page=abc", "?pageSize=x", "?pageSize=-2"} {
		for _, list := range []string{"updates", "deployments"} {
			said := b.want(http.StatusBadRequest, http.MethodGet, "/api/stacks/acme/shop/dev/"+list+query, "token viewer", "")
			if !strings.Contains(said, "must be a whole number from 1") {
				t.Errorf("%s of %s is answered %s", query, list, said)
			}
		}
	}
}

func TestAnUpdateThatIsNotThereHasNoEventsAndNoState(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"update/9/events", "update/9", "updates/9"} {
		said := b.want(http.StatusNotFound, http.MethodGet, "/api/stacks/acme/shop/dev/"+path, "token viewer", "")
		if !strings.Contains(said, "acme/shop/dev has no update 9") {
			t.Errorf("%s is answered %s", path, said)
		}
	}
}

func TestAnUpdateThatWaitedIsInTheHistoryOnce(t *testing.T) {
	b := newBench(t)
	for version, next := range map[string]string{"1": "", "2": "4", "3": "", "4": ""} {
		info := deployments.UpdateInfo{Update: deployments.UpdateName{StackName: dev, Version: version}, Kind: "up",
			Next: next, Status: "failed"}
		if err := b.store.Updates.PutInfo(t.Context(), info); err != nil {
			t.Fatal(err)
		}
	}
	var answer apitype.GetHistoryResponse
	if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev/updates",
		"token viewer", "")), &answer); err != nil {
		t.Fatal(err)
	}
	got := []int{}
	for _, u := range answer.Updates {
		got = append(got, u.Version)
	}
	if fmt.Sprint(got) != "[4 3 1]" {
		t.Errorf("the history lists %v", got)
	}
}

func TestTheHistoryHasOnlyUpdatesThatBeganAndTimesThatCanBeSubtracted(t *testing.T) {
	b := newBench(t)
	began := time.Now().Add(-time.Minute).UTC()
	for n, info := range []deployments.UpdateInfo{
		{Status: deployments.StatusSucceeded, Started: began, Ended: began.Add(30 * time.Second)},
		{Status: deployments.StatusFailed}, // of which the times are not known
		{Status: deployments.StatusRunning, Started: began},
		{Status: "cancelled", Started: began, Ended: began, Unbegun: true}, // its start was refused
	} {
		info.Update, info.Kind = deployments.UpdateName{StackName: dev, Version: fmt.Sprint(n + 1)}, engine.KindUp
		if err := b.store.Updates.PutInfo(t.Context(), info); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string][]int{"": {3, 2, 1}, "?page=1&pageSize=1": {3}, "?page=2&pageSize=2": {1}} {
		var answer apitype.GetHistoryResponse
		if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev/updates"+query,
			"token viewer", "")), &answer); err != nil {
			t.Fatal(err)
		}
		got := []int{}
		for _, u := range answer.Updates {
			got = append(got, u.Version)
			least := map[int]int64{1: 30, 2: 0, 3: 60}[u.Version]
			if took := u.EndTime - u.StartTime; took < least || u.Version < 3 && took > least {
				t.Errorf("update %d took %d s, and %d at least", u.Version, took, least)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q lists %v, not %v", query, got, want)
		}
	}
}
