package process

import (
	"slices"
	"testing"
)

func TestAPartyThatStartsManyProcessesHoldsUpNoOther(t *testing.T) {
	q := newStartQueue()
	var started []string
	add := func(party string) { q.add(party, func() { started = append(started, party) }) }
	for range 5 {
		add("evil")
	}
	add("acme")
	q.next()()
	add("other")
	add("acme")
	for range 7 {
		q.next()()
	}
	want := []string{"evil", "acme", "evil", "other", "acme", "evil", "evil", "evil"}
	if !slices.Equal(started, want) {
		t.Errorf("they are started as %v, not as %v", started, want)
	}
}
