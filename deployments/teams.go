package deployments

import "time"

// Team is a named set of members of one organization. Each of them may do what the team's grant allows, besides what
// their own grants do.
type Team struct {
	Name    string    `json:"name"` // within the grant's organization
	Grant   Grant     `json:"grant"`
	Members []string  `json:"members,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Damaged says why the team cannot be read; then it allows nothing. Only lists have such teams.
	Damaged string `json:"damaged,omitempty"`
}

// MaxTeams limits the teams of one member: each is read when the member's token is checked.
const MaxTeams = 20

// Validate reports, as CodeInvalid, why the team is not valid.
func (t Team) Validate() error {
	if t.Grant.Organization == AnyOrganization {
		return Errorf(CodeInvalid, "a team belongs to one organization: name it (--organization)")
	}
	return firstError(ValidateName("team", t.Name), t.Grant.Validate())
}

// All returns the member's own grants and those of the teams.
func (m Member) All() []Grant {
	var all []Grant
	if m.Grant != nil {
		all = append(all, *m.Grant)
	}
	for _, t := range m.Teams {
		all = append(all, t.Grant)
	}
	return all
}
