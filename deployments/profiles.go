package deployments

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Profile is a named set of environment variables of an organization, for the programs, plugins and hooks of stacks
// whose configuration names it.
type Profile struct {
	Organization string `json:"organization"`
	Name         string `json:"name"` // within the organization
	Description  string `json:"description,omitempty"`
	// Variables are sorted by name.
	Variables []ProfileVariable `json:"variables,omitempty"`
	Clouds    Clouds            `json:"clouds,omitzero"`
	// Stacks are globs of PROJECT/STACK, as those of a Grant; none means that no stack may use the profile.
	Stacks []string `json:"stacks,omitempty"`
	// Version counts the changes, from 1.
	Version int       `json:"version"`
	Created time.Time `json:"created,omitzero"`
	Changed time.Time `json:"changed,omitzero"`
	By      string    `json:"by,omitempty"` // the member or token of the last change
	// Damaged says why the profile cannot be read; then it is not used. Only lists have such profiles.
	Damaged string `json:"damaged,omitempty"`
}

// ProfileVariable is a variable of a profile.
type ProfileVariable struct {
	Name string `json:"name"`
	// Value of a secret is only ever given: in the answers of the service it is empty.
	Value  string `json:"value,omitempty"`
	Secret bool   `json:"secret,omitempty"`
}

// ProfileVersion names the version of a profile that an update uses.
type ProfileVersion struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
}

// PinnedProfile is what an update has of its profile: the newest version when the update began, until it ends.
type PinnedProfile struct {
	ProfileVersion
	Variables []ProfileVariable `json:"variables,omitempty"`
	Clouds    Clouds            `json:"clouds,omitzero"`
}

// ProfileChange changes a profile, or makes one: a change that sets nothing makes none.
type ProfileChange struct {
	Organization string `json:"organization"`
	Name         string `json:"name"`
	// Base, if not nil, is the version that was read, 0 when there was none: the change is of that one alone.
	Base *int `json:"base,omitempty"`
	// Description and Stacks, if not nil, replace what the profile has.
	Description *string   `json:"description,omitempty"`
	Stacks      *[]string `json:"stacks,omitempty"`
	// Set replaces variables by name, and Removed are the names of those that are removed. Others stay.
	Set     []ProfileVariable `json:"set,omitempty"`
	Removed []string          `json:"removed,omitempty"`
	// Clouds replaces those that it has, and RemovedClouds are the names of those that are removed. Others stay.
	Clouds        Clouds   `json:"clouds,omitzero"`
	RemovedClouds []string `json:"removedClouds,omitempty"`
	By            string   `json:"by,omitempty"` // the member or token of the caller; the service sets it
}

// Limits of profiles.
const (
	MaxProfiles           = 100 // of an organization
	MaxProfileVariables   = 100
	MaxProfileBytes       = 64 << 10 // of the names and values of its variables
	MaxProfileDescription = 500      // bytes
	maxVariableName       = 200      // bytes
)

// reservedVariables are the variables that a profile cannot set, because the worker sets or removes them, or because
// programs and the worker itself find their parts by them. One that ends with '*' stands for all that begin so.
var reservedVariables = []string{"DEPLOYCTL_*", "PULUMI_*", "LD_*", "DYLD_*", "XDG_*", "PATH", "HOME", "TMPDIR", "USER",
	"LOGNAME"}

// validateVariable reports, as CodeInvalid, why a variable cannot have the name.
func validateVariable(name string) error {
	switch {
	case name == "" || len(name) > maxVariableName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '=' || r >= 0x7f }):
		return Errorf(CodeInvalid, "%s cannot be the name of an environment variable: use 1 to %d letters, digits and '_'",
			quoted(name), maxVariableName)
	}
	for _, reserved := range reservedVariables {
		prefix, any := strings.CutSuffix(reserved, "*")
		if name == reserved || any && strings.HasPrefix(name, prefix) {
			return Errorf(CodeInvalid, "a profile cannot set %s: the worker decides about %s itself", name,
				strings.Join(reservedVariables, ", "))
		}
	}
	return nil
}

// Validate reports, as CodeInvalid, why the profile is not valid.
func (p Profile) Validate() error {
	if err := firstError(ValidateName("organization", p.Organization), ValidateName("profile", p.Name),
		validateText("description of the profile", p.Description, MaxProfileDescription)); err != nil {
		return err
	}
	if len(p.Stacks) > MaxStackGlobs {
		return Errorf(CodeInvalid, "a profile can have %d stack globs, not %d", MaxStackGlobs, len(p.Stacks))
	}
	for _, glob := range p.Stacks {
		if err := validateStackGlob(glob); err != nil {
			return err
		}
	}
	if len(p.Variables) > MaxProfileVariables {
		return Errorf(CodeInvalid, "the profile %s would have %d variables; at most %d are possible: divide it", p.Name,
			len(p.Variables), MaxProfileVariables)
	}
	size := 0
	for _, v := range p.Variables {
		if err := validateVariable(v.Name); err != nil {
			return err
		}
		if strings.Contains(v.Value, "\x00") || !utf8.ValidString(v.Value) {
			return Errorf(CodeInvalid, "the value of %s is not UTF-8 text, or has a NUL: encode it, such as in base64", v.Name)
		}
		size += len(v.Name) + len(v.Value)
	}
	if err := firstError(p.Clouds.Validate(), p.Clouds.conflict(p.Name, p.Variables)); err != nil {
		return err
	}
	if size > MaxProfileBytes {
		return Errorf(CodeInvalid, "the variables of the profile %s would have %d bytes; at most %d are possible: divide it",
			p.Name, size, MaxProfileBytes)
	}
	return nil
}

// Validate reports, as CodeInvalid, what no profile can be changed to.
func (c ProfileChange) Validate() error {
	p := Profile{Organization: c.Organization, Name: c.Name, Variables: c.Set, Clouds: c.Clouds}
	if c.Description != nil {
		p.Description = *c.Description
	}
	if c.Stacks != nil {
		p.Stacks = *c.Stacks
	}
	if err := firstError(p.Validate(), c.validClouds()); err != nil {
		return err
	}
	if c.Base != nil && (*c.Base < 0 || *c.Base > MaxVersion) {
		return Errorf(CodeInvalid, "%d is not a version of a profile", *c.Base)
	}
	if len(c.Removed) > MaxProfileVariables {
		return Errorf(CodeInvalid, "the change removes %d variables; a profile has at most %d", len(c.Removed),
			MaxProfileVariables)
	}
	if c.Description == nil && c.Stacks == nil && len(c.Set)+len(c.Removed)+len(c.RemovedClouds) == 0 && c.Clouds.Empty() {
		return Errorf(CodeInvalid, "nothing of the profile %s would change: name a variable, a cloud, a stack or a "+
			"description", c.Name)
	}
	names := slices.Clone(c.Removed)
	for _, v := range c.Set {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) < len(names) {
		return Errorf(CodeInvalid, "a variable of the profile %s is set or removed twice: name each once", c.Name)
	}
	return nil
}

// Makes reports whether the change makes the profile if there is none.
func (c ProfileChange) Makes() bool {
	return c.Description != nil || c.Stacks != nil || len(c.Set) > 0 || !c.Clouds.Empty()
}

// With returns the profile with a change, as its next version. CodeConflict: the change is of another version.
// CodeNotFound: there is no variable that it removes.
func (p Profile) With(c ProfileChange, at time.Time) (Profile, error) {
	if c.Base != nil && *c.Base != p.Version {
		return p, Errorf(CodeConflict, "the profile %s has version %d, and the change is of version %d: look at it again "+
			"(`deployctl profile show %s`)", c.Name, p.Version, *c.Base, c.Name)
	}
	p.Organization, p.Name, p.Damaged = c.Organization, c.Name, ""
	variables := map[string]ProfileVariable{}
	for _, v := range p.Variables {
		variables[v.Name] = v
	}
	for _, name := range c.Removed {
		if _, there := variables[name]; !there {
			return p, Errorf(CodeNotFound, "the profile %s has no variable %s: `deployctl profile show %s` lists those it has",
				c.Name, quoted(name), c.Name)
		}
		delete(variables, name)
	}
	for _, v := range c.Set {
		variables[v.Name] = v
	}
	p.Variables = nil
	for _, v := range variables {
		p.Variables = append(p.Variables, v)
	}
	slices.SortFunc(p.Variables, func(a, b ProfileVariable) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range c.RemovedClouds {
		if !p.Clouds.has(name) {
			return p, Errorf(CodeNotFound, "the profile %s has nothing of the cloud %s: `deployctl profile show %s` lists what "+
				"it has", c.Name, name, c.Name)
		}
	}
	p.Clouds = p.Clouds.with(c.Clouds, c.RemovedClouds)
	if c.Description != nil {
		p.Description = *c.Description
	}
	if c.Stacks != nil {
		p.Stacks = *c.Stacks
	}
	p.Version++
	p.Changed, p.By = at, c.By
	if p.Created.IsZero() {
		p.Created = at
	}
	return p, p.Validate()
}

// For reports whether a stack may use the profile.
func (p Profile) For(s StackName) bool {
	return p.Organization == s.Organization && matchesStack(p.Stacks, s)
}

// Shown returns the profile without the values of secrets.
func (p Profile) Shown() Profile {
	p.Variables = slices.Clone(p.Variables)
	for i, v := range p.Variables {
		if v.Secret {
			p.Variables[i].Value = ""
		}
	}
	return p
}

// Pin returns what an update has of the profile.
func (p Profile) Pin() *PinnedProfile {
	return &PinnedProfile{ProfileVersion: ProfileVersion{Name: p.Name, Version: p.Version}, Variables: p.Variables,
		Clouds: p.Clouds}
}

// Environment returns the variables as NAME=VALUE; none of no profile.
func (p *PinnedProfile) Environment() (env []string) {
	if p == nil {
		return nil
	}
	for _, v := range p.Variables {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// Secrets returns the values that are secret; none of no profile.
func (p *PinnedProfile) Secrets() (values []string) {
	if p == nil {
		return nil
	}
	for _, v := range p.Variables {
		if v.Secret {
			values = append(values, v.Value)
		}
	}
	return values
}

// Used returns which version the update uses; nil of no profile.
func (p *PinnedProfile) Used() *ProfileVersion {
	if p == nil {
		return nil
	}
	return &p.ProfileVersion
}

// Profiles manages profiles. What is secret in one is never answered.
type Profiles interface {
	// ChangeProfile changes a profile, or makes one, and returns its new version. Needs RoleAdmin. CodeForbidden: also
	// when the caller is no admin of the whole organization. CodeConflict: the profile does not have the version of Base
	// any more. CodeNotFound: there is no such profile, and the change makes none; or it has no variable that is removed.
	ChangeProfile(ctx context.Context, c ProfileChange) (Profile, error)
	// Profile describes a profile, without the values of its secrets. Needs RoleAdmin. CodeForbidden: also when the caller
	// is no admin of the whole organization. CodeNotFound: there is no such profile.
	Profile(ctx context.Context, organization, name string) (Profile, error)
	// Profiles lists the profiles of an organization by name: all of them, but their variables, stacks and authors only
	// to an admin of the whole organization. Needs RoleViewer. CodeNotFound: the caller sees nothing of that organization.
	Profiles(ctx context.Context, organization string) ([]Profile, error)
	// RemoveProfile removes a profile. Updates that have begun keep what they have of it. Needs RoleAdmin. CodeForbidden:
	// also when the caller is no admin of the whole organization. CodeNotFound: there is no such profile.
	RemoveProfile(ctx context.Context, organization, name string) error
}
