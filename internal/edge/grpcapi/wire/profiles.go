package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// FromProfile writes a profile. What is secret in it is never written: the service does not answer it.
func FromProfile(p deployments.Profile) *api.Profile {
	return &api.Profile{Organization: p.Organization, Name: p.Name, Description: p.Description,
		Variables: fromVariables(p.Variables), Stacks: p.Stacks, Version: int64(p.Version), Created: fromTime(p.Created),
		Changed: fromTime(p.Changed), By: p.By, Clouds: fromClouds(p.Clouds), Damaged: p.Damaged}
}

// ToProfile reads a profile.
func ToProfile(m *api.Profile) deployments.Profile {
	return deployments.Profile{Organization: m.GetOrganization(), Name: m.GetName(), Description: m.GetDescription(),
		Variables: toVariables(m.GetVariables()), Stacks: m.GetStacks(), Version: int(m.GetVersion()),
		Created: toTime(m.GetCreated()), Changed: toTime(m.GetChanged()), By: m.GetBy(), Clouds: toClouds(m.GetClouds()),
		Damaged: m.GetDamaged()}
}

func fromClouds(c deployments.Clouds) *api.ProfileClouds {
	if c.Empty() {
		return nil
	}
	m := &api.ProfileClouds{}
	if a := c.AWS; a != nil {
		m.Aws = &api.AWSRole{Role: a.Role}
	}
	if g := c.Google; g != nil {
		m.Google = &api.GoogleWorkload{Provider: g.Provider, ServiceAccount: g.ServiceAccount}
	}
	if a := c.Azure; a != nil {
		m.Azure = &api.AzureClient{Tenant: a.Tenant, Client: a.Client, Subscription: a.Subscription}
	}
	return m
}

func toClouds(m *api.ProfileClouds) (c deployments.Clouds) {
	if a := m.GetAws(); a != nil {
		c.AWS = &deployments.AWSRole{Role: a.GetRole()}
	}
	if g := m.GetGoogle(); g != nil {
		c.Google = &deployments.GoogleWorkload{Provider: g.GetProvider(), ServiceAccount: g.GetServiceAccount()}
	}
	if a := m.GetAzure(); a != nil {
		c.Azure = &deployments.AzureClient{Tenant: a.GetTenant(), Client: a.GetClient(), Subscription: a.GetSubscription()}
	}
	return c
}

// FromProfiles writes a list of profiles.
func FromProfiles(list []deployments.Profile) []*api.Profile { return each(list, FromProfile) }

// ToProfiles reads a list of profiles.
func ToProfiles(list []*api.Profile) []deployments.Profile { return each(list, ToProfile) }

func fromVariables(list []deployments.ProfileVariable) []*api.ProfileVariable {
	return each(list, func(v deployments.ProfileVariable) *api.ProfileVariable {
		return &api.ProfileVariable{Name: v.Name, Value: v.Value, Secret: v.Secret}
	})
}

func toVariables(list []*api.ProfileVariable) []deployments.ProfileVariable {
	return each(list, func(m *api.ProfileVariable) deployments.ProfileVariable {
		return deployments.ProfileVariable{Name: m.GetName(), Value: m.GetValue(), Secret: m.GetSecret()}
	})
}

// FromProfileChange writes a change of a profile, without whom it is by.
func FromProfileChange(c deployments.ProfileChange) *api.ChangeProfileRequest {
	m := &api.ChangeProfileRequest{Organization: c.Organization, Name: c.Name, Description: c.Description,
		Set: fromVariables(c.Set), Removed: c.Removed, Clouds: fromClouds(c.Clouds), RemovedClouds: c.RemovedClouds}
	if c.Base != nil {
		base := int64(*c.Base)
		m.Base = &base
	}
	if c.Stacks != nil {
		m.Stacks = &api.ProfileStacks{Stacks: *c.Stacks}
	}
	return m
}

// ToProfileChange reads a change of a profile.
func ToProfileChange(m *api.ChangeProfileRequest) deployments.ProfileChange {
	c := deployments.ProfileChange{Organization: m.GetOrganization(), Name: m.GetName(), Description: m.Description,
		Set: toVariables(m.GetSet()), Removed: m.GetRemoved(), Clouds: toClouds(m.GetClouds()),
		RemovedClouds: m.GetRemovedClouds()}
	if m.Base != nil {
		base := int(m.GetBase())
		c.Base = &base
	}
	if m.Stacks != nil {
		globs := m.GetStacks().GetStacks()
		c.Stacks = &globs
	}
	return c
}

func fromProfileVersion(p *deployments.ProfileVersion) *api.ProfileVersion {
	if p == nil {
		return nil
	}
	return &api.ProfileVersion{Name: p.Name, Version: int64(p.Version)}
}

func toProfileVersion(m *api.ProfileVersion) *deployments.ProfileVersion {
	if m == nil {
		return nil
	}
	return &deployments.ProfileVersion{Name: m.GetName(), Version: int(m.GetVersion())}
}
