package deployments

import (
	"math"
	"testing"
)

func TestAPageIsAPartOfItsListWhateverItsNumbersAre(t *testing.T) {
	for _, c := range []struct {
		page             Page
		length, from, to int
	}{
		{Page{1, 10}, 25, 0, 10}, {Page{3, 10}, 25, 20, 25}, {Page{4, 10}, 25, 25, 25}, {Page{3, 10}, 20, 20, 20},
		{Page{}, 5, 0, 1}, {Page{-1, -1}, 5, 0, 1}, {Page{1, 10}, 0, 0, 0},
		{Page{3, math.MaxInt}, 5, 5, 5}, {Page{math.MaxInt, 100}, 5, 5, 5}, {Page{math.MaxInt, math.MaxInt}, 5, 5, 5},
		{Page{3, 1 << 62}, 5, 5, 5}, {Page{1, math.MaxInt}, 5, 0, 5}, {Page{math.MinInt, math.MinInt}, 5, 0, 1},
		{Page{1, math.MaxInt}, math.MaxInt, 0, math.MaxInt},
	} {
		if from, to := c.page.Bounds(c.length); from != c.from || to != c.to {
			t.Errorf("%+v of %d is from %d to %d, not from %d to %d", c.page, c.length, from, to, c.from, c.to)
		}
	}
}
