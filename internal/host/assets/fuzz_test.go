package assets

import "testing"

// FuzzAnswers hears what the process says that opens assets, which may be the program's by now.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{`{"id":1,"index":0,"hash":"00"}`, `{"id":1,"end":true}`, `{"id":1,"index":-1}`,
		`{"id":1,"end":true,"error":"no"}`, `[`} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		q := &question{hashes: make([]string, 1), end: make(chan error, 1)}
		r := &reader{waiting: map[int]*question{1: q}}
		r.hear(first)
		r.hear(second)
		select {
		case err := <-q.end:
			if err == nil && !isHash(q.hashes[0]) {
				t.Errorf("%q and %q are taken for a hash", first, second)
			}
		default:
		}
	})
}
