package identities

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/deployctl/deployctl/statestore/bucket"
)

func TestTheOldestGenerationsAreForgotten(t *testing.T) {
	s := &Store{sealed: &bucket.Sealed{Now: time.Now}}
	known, to := map[string]lastCreate{"old": {3, 1}}, map[string]int{}
	for n := range keptGenerations {
		to[strconv.Itoa(n)] = 1
	}
	if s.raise(known, to); len(known) != keptGenerations || known["old"].Next != 0 {
		t.Errorf("%d are kept", len(known))
	}
	if labels := []string{"1", "2"}; s.raise(known, map[string]int{"1": 1}) || !slices.Contains(labels, "1") {
		t.Error("a number that is not greater is a change")
	}
}
