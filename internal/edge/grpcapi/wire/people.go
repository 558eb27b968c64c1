package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// FromTeam writes a team.
func FromTeam(t deployments.Team) *api.Team {
	return &api.Team{Name: t.Name, Grant: FromGrant(t.Grant), Members: t.Members, Created: fromTime(t.Created),
		Damaged: t.Damaged}
}

// ToTeam reads a team.
func ToTeam(m *api.Team) deployments.Team {
	return deployments.Team{Name: m.GetName(), Grant: ToGrant(m.GetGrant()), Members: m.GetMembers(),
		Created: toTime(m.GetCreated()), Damaged: m.GetDamaged()}
}

// FromTeams writes a list of teams.
func FromTeams(list []deployments.Team) []*api.Team { return each(list, FromTeam) }

// ToTeams reads a list of teams.
func ToTeams(list []*api.Team) []deployments.Team { return each(list, ToTeam) }

// FromTrust writes a trust.
func FromTrust(t deployments.Trust) *api.Trust {
	return &api.Trust{Organization: t.Organization, Name: t.Name, Issuer: t.Issuer, Audiences: t.Audiences,
		Conditions: each(t.Conditions, func(c deployments.Condition) *api.Condition {
			return &api.Condition{Claim: c.Claim, Pattern: c.Pattern}
		}),
		Grant: FromGrant(t.Grant), Lifetime: fromDuration(t.Lifetime), Created: fromTime(t.Created), Damaged: t.Damaged}
}

// ToTrust reads a trust.
func ToTrust(m *api.Trust) deployments.Trust {
	return deployments.Trust{Organization: m.GetOrganization(), Name: m.GetName(), Issuer: m.GetIssuer(),
		Audiences: m.GetAudiences(),
		Conditions: each(m.GetConditions(), func(c *api.Condition) deployments.Condition {
			return deployments.Condition{Claim: c.GetClaim(), Pattern: c.GetPattern()}
		}),
		Grant: ToGrant(m.GetGrant()), Lifetime: toDuration(m.GetLifetime()), Created: toTime(m.GetCreated()),
		Damaged: m.GetDamaged()}
}

// FromTrusts writes a list of trusts.
func FromTrusts(list []deployments.Trust) []*api.Trust { return each(list, FromTrust) }

// ToTrusts reads a list of trusts.
func ToTrusts(list []*api.Trust) []deployments.Trust { return each(list, ToTrust) }

func fromOrigin(o *deployments.Origin) *api.Origin {
	if o == nil {
		return nil
	}
	return &api.Origin{Trust: o.Trust, Identity: o.Identity, Token: o.Token, Made: fromTime(o.Made)}
}

func toOrigin(m *api.Origin) *deployments.Origin {
	if m == nil {
		return nil
	}
	return &deployments.Origin{Trust: m.GetTrust(), Identity: m.GetIdentity(), Token: m.GetToken(),
		Made: toTime(m.GetMade())}
}

func fromDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
