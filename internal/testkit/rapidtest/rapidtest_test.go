package rapidtest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestEveryRunDrawsTheSame(t *testing.T) {
	draws := func() (drawn []uint64) {
		Check(t, func(t *rapid.T) { drawn = append(drawn, rapid.Uint64().Draw(t, "number")) })
		return drawn
	}
	first := draws()
	if again := draws(); !slices.Equal(first, again) {
		t.Errorf("%v, then %v", first, again)
	}
}
