package service

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// batch writes a client's events with the sequence numbers from first to last.
func batch(t *testing.T, s *Service, u deployments.UpdateName, first, last int) {
	t.Helper()
	var events []apitype.EngineEvent
	for n := first; n <= last; n++ {
		events = append(events, apitype.EngineEvent{Sequence: n, StdoutEvent: &apitype.StdoutEngineEvent{}})
	}
	must(t, s.WriteEvents(t.Context(), deployments.Leased{Update: u}, first, events))
}

// reader follows the events of an update.
type reader struct {
	*Service
	at deployments.EventPosition
}

// next returns the sequence numbers of the next events.
func (r *reader) next(t *testing.T, u deployments.UpdateName) (numbers []int) {
	t.Helper()
	events, at, err := r.EventsAfter(t.Context(), u, r.at)
	must(t, err)
	for _, e := range events {
		numbers = append(numbers, e.Sequence)
	}
	if len(numbers) == 0 != at.Equal(r.at) {
		t.Errorf("%v was read from %+v to %+v", numbers, r.at, at)
	}
	r.at = at
	return numbers
}

func TestEveryEventOfAClientIsReadOnceInWhateverOrderItsBatchesArrive(t *testing.T) {
	s, _ := newFake(t)
	u := version(1)
	r := reader{Service: s}
	for i, step := range []struct {
		batches [][2]int
		want    []int
	}{
		{[][2]int{{3, 5}}, []int{3, 4, 5}},
		{[][2]int{{8, 8}, {0, 2}}, []int{0, 1, 2, 8}},
		{[][2]int{{0, 2}}, nil}, // it is repeated
		{[][2]int{{6, 7}}, []int{6, 7}},
		{nil, nil},
	} {
		for _, b := range step.batches {
			batch(t, s, u, b[0], b[1])
		}
		if got := r.next(t, u); !slices.Equal(got, step.want) {
			t.Errorf("step %d reads %v, not %v", i, got, step.want)
		}
	}
	if want := [][2]int{{0, 8}}; !reflect.DeepEqual(r.at.Ranges, want) {
		t.Errorf("the position has %v, not %v", r.at.Ranges, want)
	}
}

func TestAFollowerReadsEachBatchOfAClientFromTheStoreOnce(t *testing.T) {
	const batches = 50
	objects := &counting{}
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	must(t, store.CreateStack(t.Context(), dev, nil))
	r := reader{Service: New(sleeping{}, store, Readers{})}
	objects.requests.Store(0)
	for n := range batches {
		batch(t, r.Service, version(1), 10*n, 10*n+9)
		if got := r.next(t, version(1)); len(got) != 10 {
			t.Fatalf("batch %d is read as %v", n, got)
		}
	}
	if got := objects.requests.Load(); got > 3*batches {
		t.Errorf("%d batches were read with %d requests", batches, got)
	}
}

func TestAPositionStaysSmallHoweverManyBatchesNeverArrive(t *testing.T) {
	s, _ := newFake(t)
	r := reader{Service: s}
	for n := range 3 * mostRanges {
		batch(t, s, version(1), 2*n, 2*n)
		r.next(t, version(1))
	}
	if len(r.at.Ranges) > mostRanges {
		t.Errorf("the position has %d ranges", len(r.at.Ranges))
	}
}

func TestTheEventsOfEachStreamOfTheServiceAreReadOnce(t *testing.T) {
	s, _ := newFake(t)
	u := version(1)
	write := func(stream string, number, time int) {
		data, err := eventlog.Encode([]deployments.WatchEvent{{Event: &apitype.EngineEvent{Sequence: time,
			Timestamp: time}}})
		must(t, err)
		must(t, s.AppendEvents(t.Context(), statestore.Part{Update: u, Stream: stream, Number: number}, data))
	}
	r := reader{Service: s}
	for part := range 3 {
		write("run", part+1, 10*part+2)
		write("program-1", part+1, 10*part+1)
		if got, want := fmt.Sprint(r.next(t, u)), fmt.Sprint([]int{10*part + 1, 10*part + 2}); got != want {
			t.Errorf("part %d is read as %s, not %s", part, got, want)
		}
	}
}
