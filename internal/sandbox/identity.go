package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

// identity is the user that processes of a box run as.
type identity struct {
	name     string
	uid, gid int
}

func (i *identity) String() string { return fmt.Sprintf("user %s (%d)", i.name, i.uid) }

// identities gives organizations their users.
type identities struct {
	one         *identity // of all; nil: each has one of a range
	first, last int
	record      string

	mu sync.Mutex
}

// Suggested is a range of user ids that Linux hands out to nobody by default: useradd gives each account subordinate
// ids below 600100000, and systemd ends its own ranges at 1879048191.
const Suggested = "2000000000-2000065535"

// newIdentities reads the setting run-as. The accounts of the system are those of the directory etc.
func newIdentities(text, record, etc string) (*identities, error) {
	if text == "" {
		return nil, errors.New("sandbox.mode is run-as: say as whom (sandbox.run-as), a user or a range of user ids " +
			"such as " + Suggested)
	}
	if err := maySwitch(); err != nil {
		return nil, fmt.Errorf("sandbox.run-as is %q, but this process may not run others under another user id: %w",
			text, err)
	}
	if from, to, isRange := strings.Cut(text, "-"); isRange {
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 == nil && err2 == nil {
			if first < 1000 || last < first || last > 1<<31-2 {
				return nil, fmt.Errorf("sandbox.run-as is %q: a range of user ids begins at 1000 or above and ends "+
					"above that", text)
			}
			if err := unclaimed(etc, first, last); err != nil {
				return nil, fmt.Errorf("sandbox.run-as is %q: %w", text, err)
			}
			return &identities{first: first, last: last, record: record}, nil
		}
	}
	found, err := user.Lookup(text)
	if err != nil {
		if found, err = user.LookupId(text); err != nil {
			return nil, fmt.Errorf("sandbox.run-as is %q: there is no such user, and it is no range of user ids", text)
		}
	}
	uid, err1 := strconv.Atoi(found.Uid)
	gid, err2 := strconv.Atoi(found.Gid)
	if err := errors.Join(err1, err2); err != nil || uid == 0 || gid == 0 {
		return nil, fmt.Errorf("sandbox.run-as is %q: it must be a user other than root", text)
	}
	return &identities{one: &identity{found.Username, uid, gid}}, nil
}

// unclaimed returns an error if a user id of a range is an account's, or may be taken by one as a subordinate id: it
// could read and end what runs under that id. Subordinate ids of this process's user are its own to give.
func unclaimed(etc string, first, last int) error {
	self := []string{strconv.Itoa(os.Getuid())}
	if u, err := user.Current(); err == nil {
		self = append(self, u.Username)
	}
	for _, file := range []string{"passwd", "subuid", "subgid"} {
		text, err := os.ReadFile(filepath.Join(etc, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			x := strings.Split(strings.TrimSpace(line), ":")
			if len(x) < 3 || file != "passwd" && slices.Contains(self, x[0]) {
				continue
			}
			from, count := x[1], x[2] // NAME:FIRST:COUNT
			if file == "passwd" {     // NAME:x:UID:…
				from, count = x[2], "1"
			}
			start, err1 := strconv.Atoi(from)
			size, err2 := strconv.Atoi(count)
			if err := errors.Join(err1, err2); err != nil || start > last || first > start+size-1 {
				continue
			}
			return fmt.Errorf("user ids from %d to %d are those of %s (%s), who could read and end what runs under "+
				"them: give a range that nobody has, such as %s", max(first, start), min(last, start+size-1), x[0],
				filepath.Join(etc, file), Suggested)
		}
	}
	return nil
}

// of is the user of an organization. Which one that is stays recorded: no two organizations ever share one.
func (i *identities) of(organization string) (*identity, error) {
	if i.one != nil {
		return i.one, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(i.record), 0o700); err != nil {
		return nil, err
	}
	// other workers of this machine have the same record
	lock := flock.New(i.record+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }() // which frees it
	given := map[string]int{}
	text, err := os.ReadFile(i.record)
	if err == nil {
		err = json.Unmarshal(text, &given)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read which organization has which user id: %w", err)
	}
	uid, known := given[organization]
	if !known || uid < i.first || uid > i.last {
		if uid, err = i.free(organization, given); err != nil {
			return nil, err
		}
		given[organization] = uid
		if err := writeRecord(i.record, given); err != nil {
			return nil, fmt.Errorf("record which organization has which user id: %w", err)
		}
	}
	return &identity{"deployctl-" + strconv.Itoa(uid), uid, uid}, nil
}

// free is an id of the range that nobody has: the one that the organization's name leads to, or the next.
func (i *identities) free(organization string, given map[string]int) (int, error) {
	taken := map[int]bool{}
	for _, uid := range given {
		taken[uid] = true
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(organization)) // never fails
	size := i.last - i.first + 1
	start := int(sum.Sum64() % uint64(size)) //nolint:gosec // smaller than size
	for n := range size {
		if uid := i.first + (start+n)%size; !taken[uid] {
			return uid, nil
		}
	}
	return 0, fmt.Errorf("every user id of sandbox.run-as is some organization's already (see %s): make the range "+
		"larger", i.record)
}

// writeRecord replaces the record as a whole.
func writeRecord(path string, given map[string]int) error {
	text, err := json.MarshalIndent(given, "", "  ")
	if err != nil {
		return err
	}
	fresh, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = fresh.Write(append(text, '\n'))
	if err := errors.Join(err, fresh.Sync(), fresh.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
