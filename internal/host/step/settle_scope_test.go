package step

import (
	"context"
	"errors"
	"testing"
)

func TestWhoeverWaitsForTheAnswerOfASlowFunctionStopsWithItsContext(t *testing.T) {
	v := newKnownValue()
	asked, answer, first := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := v.get(t.Context(), func() (string, error) {
			close(asked)
			<-answer
			return "1", nil
		})
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancelCause(t.Context())
	cancelled := errors.New("cancelled")
	cancel(cancelled)
	if _, err := v.get(ctx, nil); !errors.Is(err, cancelled) {
		t.Errorf("it says %v", err)
	}
	close(answer)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if got, err := v.get(t.Context(), nil); err != nil || got != "1" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFewRandomBitsAreNoProof(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		enough bool
	}{
		"seven hexadecimal digits":        {[]string{"site-1a2b3c4", "site-4f5e6d7", "site-9081726", "site-c3b4a5f"}, true},
		"four of them":                    {[]string{"site-1a2b", "site-4f5e", "site-9081", "site-c3b4"}, true},
		"three of them":                   {[]string{"site-1a2", "site-4f5", "site-908", "site-c3b"}, false},
		"four decimal digits":             {[]string{"site-1122", "site-3344", "site-5566", "site-7788"}, false},
		"four letters and digits":         {[]string{"sitexa1b", "siteyq2c", "sitezr3d", "sitewt4f"}, true},
		"one of three words":              {[]string{"red", "green", "blue", "green"}, false},
		"numbers of different lengths":    {[]string{"site-7", "site-12", "site-345", "site-9"}, false},
		"what is the same in all is none": {[]string{"site-a-1", "site-a-2", "site-a-3", "site-a-4"}, false},
	} {
		if bits := randomBits(c.values); (bits >= leastRandom) != c.enough {
			t.Errorf("%s: %.0f bits", name, bits)
		}
	}
}
