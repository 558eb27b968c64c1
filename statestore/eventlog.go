package statestore

import (
	"context"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// EventParts gives how many parts each stream of an event log has, up to the first that is not there (yet). Streams are
// listed one after the other: what is written meanwhile may be seen of one and not of another.
func (s *Store) EventParts(ctx context.Context, u deployments.UpdateName) (map[string]int, error) {
	prefix := updateKey(u, "events", "")
	l, err := s.objects.List(ctx, Query{Prefix: prefix})
	if err != nil {
		return nil, failed(err, "list "+prefix)
	}
	parts := map[string]int{}
	for _, key := range l.Keys {
		stream, number, _ := strings.Cut(key[len(prefix):], "/")
		if n, err := strconv.Atoi(number); err == nil && n == parts[stream]+1 {
			parts[stream] = n
		}
	}
	return parts, nil
}
