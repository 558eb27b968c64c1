package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// batch writes a client's events with the sequence numbers from first to last.
func batch(t *testing.T, s *Service, u deployments.UpdateName, first, last int) {
	t.Helper()
	var events []apitype.EngineEvent
	for n := first; n <= last; n++ {
		events = append(events, apitype.EngineEvent{Sequence: n, StdoutEvent: &apitype.StdoutEngineEvent{}})
	}
	must(t, s.WriteEvents(t.Context(), deployments.Leased{Update: u}, asJSON(t, events)))
}

func asJSON(t *testing.T, events []apitype.EngineEvent) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(events)
	must(t, err)
	return data
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
	if len(numbers) > 0 && at.Equal(r.at) { // what a client repeats moves the position alone
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
	if got := objects.requests.Load(); got > 5*batches {
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
		must(t, s.Updates.AppendEvents(t.Context(), updates.Part{Update: u, Stream: stream, Number: number}, data))
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

func TestAPageOfEventsHasAFewMegabytesHoweverLongTheLogIs(t *testing.T) {
	s, _ := newFake(t)
	u := version(1)
	const batches, size = 12, 1 << 20
	for n := range batches {
		must(t, s.WriteEvents(t.Context(), deployments.Leased{Update: u}, asJSON(t, []apitype.EngineEvent{{Sequence: n,
			StdoutEvent: &apitype.StdoutEngineEvent{Message: strings.Repeat("x", size)}}})))
	}
	pool := mempool.New(1 << 30)
	r, pages, read := reader{Service: s}, 0, 0
	for {
		claim := pool.Claim("acme", nil)
		events, at, err := s.EventsAfter(mempool.With(t.Context(), claim, 0), u, r.at)
		claim.Release()
		must(t, err)
		if at.Equal(r.at) {
			break
		}
		if r.at, pages, read = at, pages+1, read+len(events); len(events) > pageBytes/size+1 {
			t.Errorf("a page has %d MiB", len(events))
		}
	}
	if read != batches || pages < 3 {
		t.Errorf("%d events are read in %d pages", read, pages)
	}
	none := mempool.New(1)
	claim := none.Claim("evil", nil)
	must(t, claim.Take(t.Context(), 1, 0))
	own := none.Claim("acme", nil)
	_, _, err := s.EventsAfter(mempool.With(t.Context(), own, time.Millisecond), u, deployments.EventPosition{})
	if !errors.Is(err, mempool.ErrBusy) {
		t.Errorf("without memory a page is answered %v", err)
	}
}

func TestEventsTakeTheirMemoryBeforeValuesAreMadeOfThem(t *testing.T) {
	s, _ := newFake(t)
	none := mempool.New(1 << 20)
	other := none.Claim("evil", nil)
	must(t, other.Take(t.Context(), 1<<20, 0))
	own := none.Claim("acme", nil)
	l, ctx := deployments.Leased{Update: version(1)}, mempool.With(t.Context(), own, time.Millisecond)
	events := json.RawMessage("[" + strings.Repeat("{},", 999) + "{}]") // they take more than a hundred times their text
	if err := s.WriteEvents(ctx, l, events); !errors.Is(err, mempool.ErrBusy) {
		t.Errorf("without memory they are answered %v", err)
	}
	other.Release()
	must(t, s.WriteEvents(ctx, l, events))
}

func TestEventsThatNobodyCouldReadAreRejectedWhenTheyAreWritten(t *testing.T) {
	s, _ := newFake(t)
	l := deployments.Leased{Update: version(1)}
	many := func(event string, n int) string { return "[" + strings.Repeat(event+",", n-1) + event + "]" }
	kinds := `{"sequence":1,"summaryEvent":{"resourceChanges":{`
	for n := range mostChanges {
		kinds += fmt.Sprintf(`"k%d":1,`, n)
	}
	for name, c := range map[string]struct {
		events string
		large  bool
	}{
		"no JSON":                   {`[`, false},
		"no array":                  {`{}`, false},
		"no event":                  {`[1]`, false},
		"a field of another type":   {`[{"sequence":"1"}]`, false},
		"a number that is none":     {`[{"sequence":-1}]`, false},
		"kinds that there are not":  {`[` + kinds + `"x":1}}}]`, false},
		"a kind that is a novel":    {`[{"summaryEvent":{"resourceChanges":{"` + strings.Repeat("x", 51) + `":1}}}]`, false},
		"too many events":           {many(`{}`, deployments.MaxBatch+1), true},
		"events that take too much": {many(many(`{"":0}`, 100), 3000), true},
	} {
		err := s.WriteEvents(t.Context(), l, json.RawMessage(c.events))
		if deployments.CodeOf(err) != deployments.CodeInvalid || errors.Is(err, deployments.ErrTooLarge) != c.large {
			t.Errorf("%s is answered %v", name, err)
		}
	}
	must(t, s.WriteEvents(t.Context(), l, json.RawMessage(many(`{}`, deployments.MaxBatch))))
	must(t, s.WriteEvents(t.Context(), l, json.RawMessage(`[`+strings.TrimSuffix(kinds, ",")+`}}}]`)))
	if changes, err := s.Leases.LeaseChanges(t.Context(), l.Update); err != nil || len(changes) != mostChanges {
		t.Errorf("the changes are %v, %v", changes, err)
	}
}

// FuzzClientEvents writes whatever is an array of events; what is accepted can be read.
func FuzzClientEvents(f *testing.F) {
	f.Add([]byte(`[{"sequence":3,"stdoutEvent":{"message":"x"}},{"sequence":1,"summaryEvent":{"resourceChanges":{"same":1}}}]`))
	f.Add([]byte(`[{"resOutputsEvent":{"metadata":{"old":{"inputs":{"a":[{}]}}}}}]`))
	f.Add([]byte(`[{},null,{"sequence":0}]`))
	f.Fuzz(func(t *testing.T, events []byte) {
		var s Service
		batch, err := s.judgeEvents(t.Context(), events)
		if err != nil {
			if code := deployments.CodeOf(err); code != deployments.CodeInvalid {
				t.Errorf("%s is answered %v", events, err)
			}
			return
		}
		if batch.events == 0 {
			return
		}
		read, err := eventlog.Decode(batch.encoded.Bytes())
		if err != nil || len(read) != batch.events {
			t.Errorf("%d of %d events are read: %v", len(read), batch.events, err)
		}
	})
}
