package seeds

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestARangeIsReadOrRefused(t *testing.T) {
	for text, want := range map[string][2]int{
		"1-20": {1, 20}, "7": {7, 7}, "3-3": {3, 3}, "0-2": {}, "5-4": {}, "a": {}, "": {},
	} {
		from, to, err := Parse(text)
		if [2]int{from, to} != want || (err != nil) != (want == [2]int{}) {
			t.Errorf("%q is %d to %d, %v", text, from, to, err)
		}
	}
}

func TestOutcomesAreReadBackButForALineThatIsNotWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	for n := range 3 {
		if err := Append(path, n); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"cut`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	got, err := Read(path, func(n int) bool { return n != 1 })
	if err != nil || !slices.Equal(got, []int{0, 2}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Read(path+"x", func(int) bool { return true }); err != nil || len(got) != 0 {
		t.Errorf("of no file: %v, %v", got, err)
	}
}
