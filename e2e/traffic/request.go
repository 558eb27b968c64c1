package traffic

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is a request to S3.
type Request struct {
	Method     string // GET, HEAD, PUT, DELETE or LIST
	Object     string // the key, or the prefix of a LIST, with a star in place of each name and number
	Status     int
	Bytes      int64 // of its body, both ways
	Begin, End time.Time
}

// Probe is the object by which a process asks whether the server answers.
const Probe = "probe"

// String names the kind of the request.
func (r Request) String() string { return r.Method + " " + r.Object }

type requestKey struct{}

func withRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

func requestOf(r *http.Request) *Request {
	of := &Request{Method: r.Method}
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/") // after the bucket
	if q := r.URL.Query(); r.Method == http.MethodGet && q.Has("list-type") {
		of.Method, key = "LIST", q.Get("prefix")
	}
	of.Object = masked(key)
	return of
}

// kept are the parts of keys that say what an object is.
var kept = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq("aside audit authority blob blobs checkpoints creates delta deliveries events " +
		"files head.json history hooks identities info journal keys limits members mode organizations outcome plugins " +
		"probe profiles quotas removed ring.json run schedules service stacks teams tokens trusts update updates webhooks") {
		words[word] = true
	}
	return words
}()

// masked returns a key with a star in place of each name and number.
func masked(key string) string {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		inStack := parts[0] == "stacks" && i >= 1 && i <= 3
		switch {
		case part == "":
		case strings.HasPrefix(part, "output-") && !inStack:
			parts[i] = "output"
		case inStack || !kept[part]:
			parts[i] = "*"
		}
	}
	if parts[0] == "stacks" && len(parts) > 4 {
		parts = append([]string{"stack"}, parts[4:]...)
	}
	return strings.Join(parts, "/")
}

// Chain returns a longest chain of requests each of which began after the one before it had ended. Looks are not in it.
func Chain(all []Request) []Request {
	var chain []Request
	for _, r := range slices.SortedStableFunc(slices.Values(all), func(a, b Request) int { return a.End.Compare(b.End) }) {
		if r.looks() {
			continue
		}
		if len(chain) == 0 || !r.Begin.Before(chain[len(chain)-1].End) {
			chain = append(chain, r)
		}
	}
	return chain
}

// looks are requests that nothing waits for: whether the server answers, and whether an update's log has news.
func (r Request) looks() bool {
	const log = "stack/updates/*/events/"
	return r.Object == Probe || r.Method == "LIST" && r.Object == log ||
		r.Method == http.MethodGet && r.Status == http.StatusNotFound && strings.HasPrefix(r.Object, log)
}

// Kinds counts requests by what they are.
func Kinds(all []Request) map[string]int {
	kinds := map[string]int{}
	for _, r := range all {
		kinds[r.String()]++
	}
	return kinds
}

// Table lists kinds of requests, the most frequent first.
func Table(kinds map[string]int) string {
	var out strings.Builder
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(kinds[b]-kinds[a], cmp.Compare(a, b))
	}) {
		_, _ = fmt.Fprintf(&out, "%4d %s\n", kinds[kind], kind)
	}
	return out.String()
}

// Story lists requests in order, with when each began and how long it took.
func Story(all []Request) string {
	var out strings.Builder
	for _, r := range all {
		_, _ = fmt.Fprintf(&out, "%6d ms +%4d ms  %d  %s\n", r.Begin.Sub(all[0].Begin).Milliseconds(),
			r.End.Sub(r.Begin).Milliseconds(), r.Status, r)
	}
	return out.String()
}
