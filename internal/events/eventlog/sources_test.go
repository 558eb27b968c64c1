package eventlog

import (
	"strconv"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/values/redaction"
)

func TestTheSourcesOfOutputAreBoundedAndThoseThatPrintAreKept(t *testing.T) {
	s := newSources(redaction.New([]string{"hush-hush"}))
	s.get(source{urn: "chatty"}).next("it is hush")
	for i := range 3 * maxSources {
		s.get(source{urn: strconv.Itoa(i)}).next("a message")
		if i%10 == 0 {
			s.get(source{urn: "chatty"})
		}
	}
	if n := s.recent.Len(); n != maxSources || len(s.elements) != n {
		t.Errorf("%d sources are kept in a list, %d in the map, not %d", n, len(s.elements), maxSources)
	}
	if got := s.get(source{urn: "chatty"}).next("-hush!"); got != redaction.Placeholder+"!" {
		t.Errorf("the rest of a secret is %q", got)
	}
}

func TestTheSourcesOfOutputAreBoundedByTheirNames(t *testing.T) {
	s := newSources(redaction.New(nil))
	long := strings.Repeat("u", maxNames/10)
	for i := range 50 {
		s.get(source{plugin: strconv.Itoa(i), urn: long})
	}
	if n := s.recent.Len(); n != 9 || len(s.elements) != n || s.names > maxNames {
		t.Errorf("%d sources with names of %d bytes are kept", n, s.names)
	}
}

func TestASecretThatBecomesKnownLaterIsRedactedFromThenOn(t *testing.T) {
	s := newSources(redaction.New([]string{"hush-hush"}))
	from := source{plugin: "program"}
	if got := s.get(from).next("it is hush-hush, and token-one"); got != "it is "+redaction.Placeholder+", and token-one" {
		t.Errorf("it says %q", got)
	}
	s.secrets.Store(redaction.New([]string{"hush-hush", "token-one"}))
	for _, from := range []source{from, {plugin: "another"}} {
		if got := s.get(from).next("token-one is hush-hush"); got != redaction.Placeholder+" is "+redaction.Placeholder {
			t.Errorf("it says %q", got)
		}
	}
}
