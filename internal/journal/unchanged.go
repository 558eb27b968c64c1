package journal

import "github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

// Unchanged follows the journal of an update for the steps that leave their resources as they are. The zero value has
// seen no entries. One goroutine may use it at a time.
type Unchanged struct{ begun map[int64]bool }

// mostBegun bounds what is kept of operations that have begun, against a client that ends none.
const mostBegun = 10_000

// Ends reports whether entries, the next ones of the journal, have the ends of such steps and otherwise only their
// begins. The stock CLI goes on before such entries are stored, except where such a step changes what is recorded about
// its resource besides its values. The begin of a refresh looks like that of such a step, and is waited for: entries
// without an end do not count.
func (u *Unchanged) Ends(entries []Entry) bool {
	if u.begun == nil || len(u.begun) > mostBegun {
		u.begun = map[int64]bool{}
	}
	ends, only := false, true
	for _, e := range entries {
		switch {
		case e.Kind == apitype.JournalEntryKindBegin && isNull(e.Pending):
			u.begun[e.Operation] = true
		case e.Kind == apitype.JournalEntryKindSuccess && u.begun[e.Operation] && !isNull(e.State) && !e.IsRefresh:
			delete(u.begun, e.Operation)
			ends = true
		default:
			delete(u.begun, e.Operation)
			only = false
		}
	}
	return ends && only
}
