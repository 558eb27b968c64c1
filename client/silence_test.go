package client

import (
	"slices"
	"testing"
)

func TestWhoWasToldThatAPartDoesNotAnswerIsToldThatItDoes(t *testing.T) {
	var told []string
	s := silence{tellPart: func(why string) { told = append(told, why) }}
	s.reached()
	for range 2 {
		s.waits("the bucket does not answer")
		s.waits("the bucket does not answer")
		s.reached()
		s.reached()
	}
	if want := slices.Repeat([]string{"the bucket does not answer", ""}, 2); !slices.Equal(told, want) {
		t.Errorf("it is told %q", told)
	}
}
