package guard

import (
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWhatAnOwnerHasLeft(t *testing.T) {
	for said, want := range map[string]map[int]int{
		"":                                  {},
		"+7\n+8\n-7\n":                      {8: 1},
		"+7\n+7\n-7\n":                      {7: 1},
		"-7\n+7\n":                          {7: 1},
		"+1\n+0\n+-5\n+x\n\n7\n+9":          {9: 1},
		"+7\n" + strings.Repeat("7", 1<<17): nil, // no owner says that
	} {
		if got := left(strings.NewReader(said)); !maps.Equal(got, want) {
			t.Errorf("%.20q leaves %v, want %v", said, got, want)
		}
	}
	broken := io.MultiReader(strings.NewReader("+7\n"), iotest.ErrReader(errors.New("broken")))
	if got := left(broken); len(got) != 0 {
		t.Errorf("an owner that cannot be read leaves %v", got)
	}
}
