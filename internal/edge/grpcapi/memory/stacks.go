package memory

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// CreateStack makes a stack.
func (s *Service) CreateStack(_ context.Context, name deployments.StackName, tags map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.stacks[name]; ok {
		return deployments.Errorf(deployments.CodeExists, "the stack %s already exists", name)
	}
	s.stacks[name] = &stack{
		info: deployments.StackInfo{Stack: name, Tags: tags},
		deployment: apitype.UntypedDeployment{Version: 3, Deployment: []byte(
			`{"manifest":{"time":"0001-01-01T00:00:00Z","magic":"","version":""}}`)},
	}
	return nil
}

// RecreateStack makes a stack with an identity, whoever has it.
func (s *Service) RecreateStack(
	ctx context.Context, _ deployments.Caller, name deployments.StackName, identity string,
) error {
	if _, err := deployments.ParseIdentity(identity); err != nil {
		return err
	}
	if err := s.CreateStack(ctx, name, nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stacks[name].info.Identity = identity
	return nil
}

// ListStacks lists stacks by name.
func (s *Service) ListStacks(_ context.Context, organization, project string) ([]deployments.StackInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []deployments.StackInfo
	for name, found := range s.stacks {
		if (organization == "" || name.Organization == organization) && (project == "" || name.Project == project) {
			list = append(list, found.info)
		}
	}
	slices.SortFunc(list, func(a, b deployments.StackInfo) int {
		return strings.Compare(a.Stack.String(), b.Stack.String())
	})
	return list, nil
}

// Stack describes a stack.
func (s *Service) Stack(_ context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(name)
	if err != nil {
		return deployments.StackInfo{}, err
	}
	return found.info, nil
}

// RemoveStack removes a stack.
func (s *Service) RemoveStack(_ context.Context, name deployments.StackName, force bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(name)
	if err != nil {
		return err
	}
	if found.info.Resources > 0 && !force {
		return deployments.Errorf(deployments.CodeInvalid, "stack %s is not empty", name)
	}
	delete(s.stacks, name)
	return nil
}

// RenameStack gives a stack another name.
func (s *Service) RenameStack(_ context.Context, r deployments.RenameRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(r.From)
	if err != nil {
		return err
	}
	if _, ok := s.stacks[r.To]; ok {
		return deployments.Errorf(deployments.CodeExists, "the stack %s already exists", r.To)
	}
	delete(s.stacks, r.From)
	found.info.Stack = r.To
	s.stacks[r.To] = found
	return nil
}

// TagStack replaces a stack's tags.
func (s *Service) TagStack(_ context.Context, name deployments.StackName, tags map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(name)
	if err != nil {
		return err
	}
	found.info.Tags = tags
	return nil
}

// ChangeTags sets tags of a stack, and removes some.
func (s *Service) ChangeTags(
	_ context.Context, name deployments.StackName, set map[string]string, removed []string,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(name)
	if err != nil {
		return err
	}
	tags := maps.Clone(found.info.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, set)
	for _, tag := range removed {
		delete(tags, tag)
	}
	found.info.Tags = tags
	return nil
}

// Export gives the deployment that was imported last.
func (s *Service) Export(
	_ context.Context, name deployments.StackName, _ int, _ deployments.SecretsProvider, _ bool,
) (apitype.UntypedDeployment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(name)
	if err != nil {
		return apitype.UntypedDeployment{}, err
	}
	return found.deployment, nil
}

// ExportRaw writes the deployment that was imported last, which is no archive.
func (s *Service) ExportRaw(_ context.Context, name deployments.StackName, to io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(name)
	if err != nil {
		return err
	}
	_, err = to.Write(found.deployment.Deployment)
	return err
}

// Import keeps a deployment.
func (s *Service) Import(_ context.Context, r deployments.ImportRequest) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(r.Stack)
	if err != nil {
		return 0, err
	}
	if found.info.Resources > 0 && !r.Forget && !bytes.Contains(r.Deployment.Deployment, []byte(`"urn"`)) {
		return 0, deployments.Errorf(deployments.CodeUnconfirmed, "the %d resources of %s would be forgotten",
			found.info.Resources, r.Stack)
	}
	found.deployment = r.Deployment
	found.info.Version++
	return found.info.Version, nil
}

// EditState notes the edit of a state, which it does not look into.
func (s *Service) EditState(_ context.Context, r deployments.EditRequest) (deployments.Edited, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(r.Stack)
	if err != nil {
		return deployments.Edited{}, err
	}
	s.Edits = append(s.Edits, r)
	edited := deployments.Edited{Version: found.info.Version}
	for _, name := range r.Resources {
		edited.Changes = append(edited.Changes, string(r.Edit)+" "+name)
	}
	if !r.DryRun {
		found.info.Version++
		edited.Version++
	}
	return edited, nil
}

// MoveState counts the versions of both stacks, and moves nothing.
func (s *Service) MoveState(_ context.Context, r deployments.MoveRequest) (deployments.Moved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, err := s.find(r.From)
	if err != nil {
		return deployments.Moved{}, err
	}
	to, err := s.find(r.To)
	if err != nil {
		return deployments.Moved{}, err
	}
	from.info.Version++
	to.info.Version++
	return deployments.Moved{FromVersion: from.info.Version, ToVersion: to.info.Version, Changes: r.Resources}, nil
}

// Restore gives a stack that has been at a version before that one again; only its number, and whether it had
// resources, is kept.
func (s *Service) Restore(_ context.Context, r deployments.RestoreRequest) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(r.Stack)
	if err != nil {
		return 0, err
	}
	if r.Version < 1 || r.Version >= found.info.Version {
		return 0, deployments.Errorf(deployments.CodeNotFound, "stack %s has no earlier version %d", r.Stack, r.Version)
	}
	empty := slices.ContainsFunc(found.history, func(u deployments.UpdateInfo) bool {
		return u.Update.Number() == r.Version && u.Resources == 0
	})
	if found.info.Resources > 0 && empty && !r.Forget {
		return 0, deployments.Errorf(deployments.CodeUnconfirmed, "the %d resources of %s would be forgotten",
			found.info.Resources, r.Stack)
	}
	found.info.Version++
	return found.info.Version, nil
}

// Recover ends the stack's update, if it is one that Lost says.
func (s *Service) Recover(_ context.Context, r deployments.RecoverRequest) (deployments.UpdateInfo, error) {
	s.mu.Lock()
	found, err := s.find(r.Stack)
	if err != nil || found.info.Active == nil {
		s.mu.Unlock()
		return deployments.UpdateInfo{}, err
	}
	u := s.updates[found.info.Active.Update.String()]
	s.mu.Unlock()
	if !u.script.Lost {
		return deployments.UpdateInfo{}, deployments.Errorf(deployments.CodeConflict, "%s is running", u.info.Update)
	}
	return s.settle(u, deployments.StatusFailed), nil
}

// History lists the updates of a stack.
func (s *Service) History(_ context.Context, name deployments.StackName, limit int) ([]deployments.UpdateInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(name)
	if err != nil {
		return nil, err
	}
	list := slices.Clone(found.history[:min(limit, len(found.history))])
	for i := range list {
		list[i].Kept = true
	}
	return list, nil
}
