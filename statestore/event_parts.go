package statestore

import (
	"context"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// EventParts returns the number of parts of each stream of an event log, up to the first missing one. Streams are
// listed one after the other, so parts that are written meanwhile may be counted in some streams only.
func (s *Store) EventParts(ctx context.Context, u deployments.UpdateName) (map[string]int, error) {
	prefix := stackobjects.UpdateKey(u, eventsFolder, "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: prefix})
	if err != nil {
		return nil, bucket.Failed(err, "list "+prefix)
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
