package deployments

import (
	"fmt"
	"time"
)

// MostStatuses is how many stacks a page of StatusQuery may read, and reads without a limit.
const MostStatuses = 200

// StatusQuery selects stacks, by name.
type StatusQuery struct {
	Organization, Project string // empty: all
	// After is the full name of a stack: the page begins with the next one. StatusPage.Next is one.
	After string
	// Limit is how many stacks are read; 0: MostStatuses.
	Limit int
}

// Validate reports, as CodeInvalid, why it selects nothing.
func (q StatusQuery) Validate() error {
	for what, name := range map[string]string{"organization": q.Organization, "project": q.Project} {
		if name == "" {
			continue
		}
		if err := ValidateName(what, name); err != nil {
			return err
		}
	}
	if q.Limit < 0 || q.Limit > MostStatuses {
		return Errorf(CodeInvalid, "a page has at most %d stacks, not %d", MostStatuses, q.Limit)
	}
	if q.After == "" {
		return nil
	}
	name, err := ParseStackName(q.After, StackName{})
	if err != nil {
		return err
	}
	return name.Validate()
}

// StatusPage has a part of the stacks of a StatusQuery.
type StatusPage struct {
	Stacks []StackStatus `json:"stacks"`
	// Next continues after this page; empty: it is the last.
	Next string `json:"next,omitempty"`
	// Incomplete says why schedules and waits are not known.
	Incomplete string `json:"incomplete,omitempty"`
}

// StackStatus is a stack as an operator looks at it.
type StackStatus struct {
	StackInfo
	// Last is the latest update that has ended; nil: none has.
	Last      *UpdateInfo      `json:"last,omitempty"`
	Drift     *DriftStatus     `json:"drift,omitempty"` // nil: it was never checked
	Schedules []ScheduleStatus `json:"schedules,omitempty"`
}

// DriftStatus sums up a stack's last drift check.
type DriftStatus struct {
	At         time.Time `json:"at"`
	Resources  int       `json:"resources"`            // that had drifted
	Remediated bool      `json:"remediated,omitempty"` // since then
}

// ScheduleStatus sums up a schedule.
type ScheduleStatus struct {
	Name   string    `json:"name"`
	Paused bool      `json:"paused,omitempty"`
	Note   string    `json:"note,omitempty"` // why it is paused, or will never run
	Next   time.Time `json:"next,omitzero"`
}

// Drifted is how many resources had drifted at the last check, unless the stack was updated since.
func (s StackStatus) Drifted() int {
	if s.Drift == nil || s.Drift.Remediated || s.Updated.After(s.Drift.At) {
		return 0
	}
	return s.Drift.Resources
}

// Needs says what of a stack needs a person, in the order of urgency.
func (s StackStatus) Needs() (needs []string) {
	if s.Damaged != "" {
		needs = append(needs, "it cannot be read: "+s.Damaged)
	}
	if s.Active != nil && len(s.Active.Waiting) > 0 {
		needs = append(needs, fmt.Sprintf("update %s waits for `deployctl resolve` of %s", s.Active.Update.Version,
			counted(len(s.Active.Waiting), "resource")))
	}
	if s.Pending > 0 && s.Active == nil {
		needs = append(needs, counted(s.Pending, "pending operation"))
	}
	for _, sched := range s.Schedules {
		need := "schedule " + sched.Name
		if sched.Paused {
			need += " is paused"
		}
		if sched.Note != "" {
			need += ": " + sched.Note
		}
		if sched.Paused || sched.Note != "" {
			needs = append(needs, need)
		}
	}
	return needs
}

// Healthy reports whether its last update succeeded, nothing has drifted, and nothing needs a person.
func (s StackStatus) Healthy() bool {
	return (s.Last == nil || s.Last.Status == "succeeded") && s.Drifted() == 0 && len(s.Needs()) == 0
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
