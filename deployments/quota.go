package deployments

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Limit names what a quota bounds.
type Limit string

// The limits of an organization.
const (
	LimitStacks        Limit = "stacks"
	LimitResources     Limit = "resources"      // of all stacks, as they are counted in lists of stacks
	LimitUpdates       Limit = "updates"        // that run at a time
	LimitWorkerMinutes Limit = "worker-minutes" // of updates and previews that workers host, within QuotaDays
	LimitUploadBytes   Limit = "upload-bytes"   // of the files of one program
	LimitVersions      Limit = "versions"       // of each stack that are kept
)

// Limits are all limits, in the order in which they are shown.
func Limits() []Limit {
	return []Limit{LimitStacks, LimitResources, LimitUpdates, LimitWorkerMinutes, LimitUploadBytes, LimitVersions}
}

const (
	// QuotaKnownWithin is how long after it was set a limit counts for every process of the service.
	QuotaKnownWithin = 5 * time.Second
	// QuotaDays are the days within which the minutes of a worker count, today among them.
	QuotaDays = 30
	// mostOfLimit is the largest value of a limit.
	mostOfLimit = 1 << 50
)

// Quota is what an organization may use. A limit that is not in it does not hold.
type Quota map[Limit]int64

// QuotaUse is the quota of an organization, and what the organization uses. Limits that are about one program or one
// stack have no use, and the minutes of a worker are counted only while they are limited.
type QuotaUse struct {
	Organization string          `json:"organization"`
	Limits       Quota           `json:"limits"`
	Used         map[Limit]int64 `json:"used"`
	// By is the operator who has set the quota last, and Since when that was.
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Damaged says why the quota cannot be read, if so.
	Damaged string `json:"damaged,omitempty"`
}

// QuotaChange sets limits of an organization and removes some; its others stay.
type QuotaChange struct {
	Organization string  `json:"organization"`
	Set          Quota   `json:"set,omitempty"`
	Removed      []Limit `json:"removed,omitempty"`
	By           string  `json:"by,omitempty"` // the operator's member or token
}

// Validate rejects, as CodeInvalid, what no operator can set.
func (c QuotaChange) Validate() error {
	if err := ValidateName("organization", c.Organization); err != nil {
		return err
	}
	if len(c.Set)+len(c.Removed) == 0 {
		return Errorf(CodeInvalid, "nothing of the quota of %s would change: name a limit (%s)", c.Organization,
			limitNames())
	}
	for _, l := range slices.Sorted(maps.Keys(c.Set)) {
		least := int64(0)
		if l == LimitVersions {
			least = 1 // the newest is the state
		}
		if n := c.Set[l]; n < least || n > mostOfLimit {
			return Errorf(CodeInvalid, "%d is no limit for %.50q: it can be %d to %d", n, l, least, int64(mostOfLimit))
		}
		if slices.Contains(c.Removed, l) {
			return Errorf(CodeInvalid, "the limit %.50q cannot be both set and removed", l)
		}
	}
	for _, l := range append(slices.Sorted(maps.Keys(c.Set)), c.Removed...) {
		if !slices.Contains(Limits(), l) {
			return Errorf(CodeInvalid, "there is no limit %.50q: a quota has %s", l, limitNames())
		}
	}
	return nil
}

func limitNames() string {
	var names []string
	for _, l := range Limits() {
		names = append(names, string(l))
	}
	return strings.Join(names, ", ")
}

// Change returns the quota with a change.
func (q Quota) Change(c QuotaChange) Quota {
	changed := maps.Clone(q)
	if changed == nil {
		changed = Quota{}
	}
	maps.Copy(changed, c.Set)
	for _, l := range c.Removed {
		delete(changed, l)
	}
	return changed
}

// OverQuota returns the error about what an organization may not do because of a limit, as CodeQuota: what it uses,
// with a verb, and what can be done instead of asking for more, if anything.
func OverQuota(organization string, l Limit, limit int64, uses, instead string) error {
	if instead != "" {
		instead += ", or "
	}
	return Errorf(CodeQuota, "the organization %s %s, and its quota allows %s: %sask an operator of the service for more "+
		"(`deployctl quota set %s --%s N`)", organization, uses, l.Shown(limit), instead, organization, l)
}

// Plural returns a number of things, such as "1 stack" and "2 stacks".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Shown returns a value of a limit with its unit.
func (l Limit) Shown(n int64) string {
	switch l {
	case LimitUploadBytes:
		return fmt.Sprintf("%d bytes", n)
	case LimitWorkerMinutes:
		return fmt.Sprintf("%d within %d days", n, QuotaDays)
	case LimitUpdates:
		return fmt.Sprintf("%d at a time", n)
	}
	return fmt.Sprint(n)
}

// Quotas bounds what organizations use.
type Quotas interface {
	// Quotas describes the quota of an organization, and what it uses; with an empty name, of all that the caller sees
	// anything of. Needs RoleViewer. CodeNotFound: the caller sees nothing of that organization.
	Quotas(ctx context.Context, organization string) ([]QuotaUse, error)
	// SetQuota changes the quota of an organization, which need not have any stacks. Needs RoleAdmin. CodeForbidden: also
	// when the caller is not an admin of all organizations.
	SetQuota(ctx context.Context, c QuotaChange) error
}
