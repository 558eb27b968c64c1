package share_test

import (
	"testing"

	"github.com/deployctl/deployctl/internal/sys/share"
)

func TestThePartyThatHasTheMostLosesOneOfItsOwn(t *testing.T) {
	one := func(party string, size int) share.Kept { return share.Kept{Party: party, Size: size} }
	awaited := func(party string, size int) share.Kept { return share.Kept{Party: party, Size: size, Awaited: true} }
	for name, c := range map[string]struct {
		kept []share.Kept
		want int
	}{
		"what is within the bounds is kept": {[]share.Kept{one("a", 5), one("b", 3), one("b", 2)}, -1},
		"of too many, the oldest of the party with the most goes": {
			[]share.Kept{one("a", 1), one("b", 1), one("b", 1), one("b", 1)}, 1},
		"of what is too large, the oldest of the party with the largest part goes": {
			[]share.Kept{one("a", 1), one("a", 1), one("b", 9)}, 0},
		"the only one of a party stays while another party has several": {
			[]share.Kept{one("a", 9), one("b", 1), one("b", 1)}, 1},
		"what is awaited stays while another of its party is idle": {
			[]share.Kept{one("a", 1), awaited("b", 1), one("b", 1), awaited("b", 1)}, 2},
		"of those that are all awaited, the latest goes": {
			[]share.Kept{one("a", 1), awaited("b", 1), awaited("b", 1), awaited("b", 1)}, 3},
		"the only ones of parties stay while they are awaited": {
			[]share.Kept{awaited("a", 9), awaited("b", 9)}, -1},
		"an idle one of them goes": {[]share.Kept{awaited("a", 9), one("b", 9)}, 1},
		"one alone stays":          {[]share.Kept{one("a", 99)}, -1},
	} {
		if got := (share.Bounds{Number: 3, Size: 10}).Excess(c.kept); got != c.want {
			t.Errorf("%s: %d gives way, not %d", name, got, c.want)
		}
	}
}
