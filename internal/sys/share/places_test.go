package share

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestAPartyHasItsPartAndLeavesRoomForOthers(t *testing.T) {
	p := NewPlaces(Limits{All: 4, OfOne: 3, Least: 1})
	take := func(party string, want bool) func() {
		t.Helper()
		leave, ok := p.Take(party)
		if ok != want {
			t.Fatalf("%s has got a place: %v", party, ok)
		}
		return leave
	}
	leave := take("a", true)
	take("a", true)
	take("a", true)
	take("a", false)()
	take("b", true)
	take("b", false) // all are taken, and it has the least
	take("c", true)  // has none
	leave()
	leave()
	take("a", false) // all are taken still: c has one beyond them
	if p.Held() != 4 {
		t.Fatalf("%v are taken", p.taken)
	}
}

// TestWhatIsLeftIsThereAgain plays 20,000 changes: no party ever has more than its part, one without a place always
// gets one, and in the end nothing is taken.
func TestWhatIsLeftIsThereAgain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	p := NewPlaces(Limits{All: 20, OfOne: 12, Least: 2})
	held := map[string][]func(){}
	for range 20_000 {
		party := strconv.Itoa(random.IntN(8))
		if of := held[party]; len(of) > 0 && random.IntN(2) == 0 {
			of[0]()
			held[party] = of[1:]
			continue
		}
		leave, ok := p.Take(party)
		if !ok && len(held[party]) < 2 || ok && len(held[party]) >= 12 {
			t.Fatalf("a party that has %d places has got one: %v", len(held[party]), ok)
		}
		if ok {
			held[party] = append(held[party], leave)
		}
	}
	for _, of := range held {
		for _, leave := range of {
			leave()
		}
	}
	if p.Held() != 0 || len(p.taken) != 0 {
		t.Fatalf("%d are taken, by %v", p.Held(), p.taken)
	}
}
