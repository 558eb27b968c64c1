package eventlog

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/deployctl/deployctl/internal/values/redaction"
)

// maxSources and maxNames bound the sources whose last text is kept, and the bytes of their names; the source that has
// been silent for longest is forgotten.
const maxSources, maxNames = 1000, 4 << 20

// source is what messages come from: a plugin or the program, about one resource, with one severity.
type source struct{ plugin, severity, urn string }

func (s source) size() int { return len(s.plugin) + len(s.severity) + len(s.urn) }

// sourceText is the text of one source so far: a secret may begin at the end of one message and end in the next one.
type sourceText struct {
	source source
	of     *sources
	mu     sync.Mutex
	stream *redaction.Stream
}

// next redacts the source's next message.
func (s *sourceText) next(message string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream.Use(s.of.secrets.Load())
	return s.stream.Next(redaction.Controls(message))
}

// sources are those that printed last. It is safe for concurrent use.
type sources struct {
	secrets atomic.Pointer[redaction.Redactor]

	mu       sync.Mutex
	recent   *list.List // of *sourceText, the one that printed last first
	elements map[source]*list.Element
	names    int // bytes of the names of all
}

func newSources(secrets *redaction.Redactor) *sources {
	s := &sources{recent: list.New(), elements: map[source]*list.Element{}}
	s.secrets.Store(secrets)
	return s
}

// get returns the text of a source.
func (s *sources) get(from source) *sourceText {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.elements[from]; ok {
		s.recent.MoveToFront(known)
		return known.Value.(*sourceText)
	}
	s.names += from.size()
	for s.recent.Len() > 0 && (s.recent.Len() == maxSources || s.names > maxNames) {
		oldest := s.recent.Remove(s.recent.Back()).(*sourceText)
		delete(s.elements, oldest.source)
		s.names -= oldest.source.size()
	}
	text := &sourceText{source: from, of: s, stream: s.secrets.Load().Stream()}
	s.elements[from] = s.recent.PushFront(text)
	return text
}
