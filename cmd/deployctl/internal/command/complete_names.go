package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/access"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/configuration"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/stack"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// The functions below are sources of completions: of the names that the service, or the project, has.

func stackNames(ctx context.Context, s *console.Session) []string {
	project := ""
	if s.NeedProject() == nil {
		project = s.Project.Name()
	}
	if s.Dial(ctx) != nil {
		return nil
	}
	list, err := s.Service.ListStacks(ctx, s.Settings.Get(settings.Organization), project)
	if err != nil {
		return nil
	}
	var names []string
	for _, info := range list {
		if project == "" {
			names = append(names, info.Stack.String())
		} else {
			names = append(names, info.Stack.Stack)
		}
	}
	return names
}

// ofStack returns the result of fn for the command's stack; nil if the stack cannot be determined.
func ofStack(ctx context.Context, s *console.Session, fn func(deployments.StackName) []string) []string {
	if s.Dial(ctx) != nil {
		return nil
	}
	name, err := s.StackName(ctx)
	if err != nil {
		return nil
	}
	return fn(name)
}

func urns(ctx context.Context, s *console.Session) []string {
	return ofStack(ctx, s, func(name deployments.StackName) []string {
		provider, err := s.ExportSecrets(ctx, name, false)
		if err != nil {
			return nil
		}
		untyped, err := s.Service.Export(ctx, name, 0, provider, false)
		if err != nil {
			return nil
		}
		resources, err := console.ParseResources(untyped)
		if err != nil {
			return nil
		}
		var list []string
		for _, r := range resources {
			if !r.Delete && !strings.HasPrefix(string(r.Type), "pulumi:providers:") {
				list = append(list, string(r.URN))
			}
		}
		return list
	})
}

func versions(ctx context.Context, s *console.Session) []string {
	return ofStack(ctx, s, func(name deployments.StackName) []string {
		history, err := s.Service.History(ctx, name, completedVersions)
		if err != nil {
			return nil
		}
		var list []string
		for _, u := range history {
			list = append(list, fmt.Sprintf("%s\t%s %s %s", u.Update.Version, u.Kind, u.Status, console.When(u.Started)))
		}
		return list
	})
}

func scheduleNames(ctx context.Context, s *console.Session) []string {
	return ofStack(ctx, s, func(name deployments.StackName) []string {
		schedules, err := s.Service.Schedules(ctx, name)
		if err != nil {
			return nil
		}
		var list []string
		for _, schedule := range schedules {
			list = append(list, schedule.Name.Name)
		}
		return list
	})
}

func outputNames(ctx context.Context, s *console.Session) []string {
	return ofStack(ctx, s, func(name deployments.StackName) []string {
		outputs, err := stack.Outputs(ctx, s, name)
		if err != nil {
			return nil
		}
		return console.Sorted(outputs)
	})
}

func tagNames(ctx context.Context, s *console.Session) []string {
	return ofStack(ctx, s, func(name deployments.StackName) []string {
		info, err := s.Service.Stack(ctx, name)
		if err != nil {
			return nil
		}
		return console.Sorted(info.Tags)
	})
}

func tokenNames(ctx context.Context, s *console.Session) []string {
	if s.Dial(ctx) != nil {
		return nil
	}
	tokens, err := s.Service.ListTokens(ctx)
	if err != nil {
		return nil
	}
	var list []string
	for _, t := range tokens {
		list = append(list, t.Name+"\t"+access.ScopeText(t))
	}
	return list
}

func memberNames(ctx context.Context, s *console.Session) []string {
	if s.Dial(ctx) != nil {
		return nil
	}
	members, err := s.Service.ListMembers(ctx)
	if err != nil {
		return nil
	}
	var list []string
	for _, m := range members {
		list = append(list, m.Name+"\t"+access.GrantsText(m))
	}
	return list
}

func teamNames(ctx context.Context, s *console.Session) []string {
	if s.Dial(ctx) != nil {
		return nil
	}
	teams, err := s.Service.ListTeams(ctx)
	if err != nil {
		return nil
	}
	var list []string
	for _, m := range teams {
		list = append(list, m.Name)
	}
	return list
}

func trustNames(ctx context.Context, s *console.Session) []string {
	if s.Dial(ctx) != nil {
		return nil
	}
	trusts, err := s.Service.ListTrusts(ctx)
	if err != nil {
		return nil
	}
	var list []string
	for _, m := range trusts {
		list = append(list, m.Name)
	}
	return list
}

func profileNames(ctx context.Context, s *console.Session) []string {
	if s.Dial(ctx) != nil {
		return nil
	}
	profiles, err := s.Service.Profiles(ctx, s.Settings.Get(settings.Organization))
	if err != nil {
		return nil
	}
	var list []string
	for _, p := range profiles {
		list = append(list, p.Name)
	}
	return list
}

// variableNames lists the variables of the profile that the first argument names.
func variableNames(ctx context.Context, s *console.Session) []string {
	if s.Dial(ctx) != nil {
		return nil
	}
	p, err := s.Service.Profile(ctx, s.Settings.Get(settings.Organization), s.Flags.Args().First())
	if err != nil {
		return nil
	}
	var list []string
	for _, v := range p.Variables {
		list = append(list, v.Name)
	}
	return list
}

func configKeys(ctx context.Context, s *console.Session) []string {
	secrets, err := configuration.Configured(ctx, s)
	if err != nil {
		return nil
	}
	var list []string
	for _, key := range secrets.Stack.Keys() {
		list = append(list, strings.TrimPrefix(key.String(), s.Project.Name()+":"))
	}
	return list
}

// resourceNames lists the completions of a resource: the names that only one resource has, and the URNs of all.
func resourceNames(ctx context.Context, s *console.Session) []string {
	return ofStack(ctx, s, func(name deployments.StackName) []string {
		info, err := s.Service.Stack(ctx, name)
		if err != nil {
			return nil
		}
		list, err := s.Resources(ctx, info, false)
		if err != nil {
			return nil
		}
		return namesOf(list)
	})
}

// namesOf returns the names of resources that only one of them has, and then their URNs.
func namesOf(list []apitype.ResourceV3) []string {
	counts := map[string]map[urn.URN]bool{}
	for _, r := range list {
		if counts[r.URN.Name()] == nil {
			counts[r.URN.Name()] = map[urn.URN]bool{}
		}
		counts[r.URN.Name()][r.URN] = true
	}
	var names, full []string
	for _, r := range list {
		if r.Delete {
			continue
		}
		full = append(full, string(r.URN)+"\t"+string(r.Type))
		if len(counts[r.URN.Name()]) == 1 {
			names = append(names, r.URN.Name()+"\t"+string(r.Type))
		}
	}
	return append(names, full...)
}
