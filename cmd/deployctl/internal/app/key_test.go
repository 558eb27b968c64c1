package app

import (
	"slices"
	"testing"
	"time"
)

func TestHowFarACommandIsIsToldAfterAWhileAndThenAtIntervals(t *testing.T) {
	var told []int
	tell := func(done, _ int) { told = append(told, done) }
	quick, slow := every(time.Hour, time.Now(), tell), every(time.Hour, time.Now().Add(-time.Hour), tell)
	for done := range 3 {
		quick(10+done, 13)
		slow(20+done, 23)
	}
	if !slices.Equal(told, []int{20}) {
		t.Errorf("it tells %v", told)
	}
}
