package console

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Resources returns the resources of a stack's state at the version of info. Secrets are ciphertexts, or in plaintext
// with show.
func (s *Session) Resources(
	ctx context.Context, info deployments.StackInfo, show bool,
) ([]apitype.ResourceV3, error) {
	if info.Version == 0 {
		return nil, nil
	}
	provider, err := s.ExportSecrets(ctx, info.Stack, show)
	if err != nil {
		return nil, err
	}
	untyped, err := s.Service.Export(ctx, info.Stack, info.Version, provider, show)
	if err != nil {
		return nil, err
	}
	return ParseResources(untyped)
}

// ParseResources returns the resources of an exported deployment. CodeFormat: it cannot be read.
func ParseResources(untyped apitype.UntypedDeployment) ([]apitype.ResourceV3, error) {
	var deployment apitype.DeploymentV3
	if err := json.Unmarshal(untyped.Deployment, &deployment); err != nil {
		return nil, deployments.Errorf(deployments.CodeFormat, "the stack's deployment cannot be read: %w", err)
	}
	return deployment.Resources, nil
}

// FindURN returns the URN that a word means: the URN itself, or the name of the only resource that has it.
func FindURN(list []apitype.ResourceV3, word string) (urn.URN, error) {
	if strings.HasPrefix(word, urn.Prefix) {
		if slices.ContainsFunc(list, func(r apitype.ResourceV3) bool { return string(r.URN) == word }) {
			return urn.URN(word), nil
		}
		return "", unknownResource(word, list, func(u urn.URN) string { return string(u) })
	}
	var found []string
	for _, r := range list {
		if r.URN.Name() == word && !slices.Contains(found, string(r.URN)) {
			found = append(found, string(r.URN))
		}
	}
	switch len(found) {
	case 0:
		return "", unknownResource(word, list, urn.URN.Name)
	case 1:
		return urn.URN(found[0]), nil
	}
	return "", deployments.Errorf(deployments.CodeInvalid, "%d resources are named %s; write the URN of the one that "+
		"you mean:\n  %s", len(found), word, strings.Join(found, "\n  "))
}

// unknownResource returns the error that a word names no resource. It suggests a similar one.
func unknownResource(word string, list []apitype.ResourceV3, text func(urn.URN) string) error {
	var names []string
	for _, r := range list {
		names = append(names, text(r.URN))
	}
	hint := DidYouMean(word, names)
	if hint == "" {
		hint = "; see deployctl state ls"
	}
	return deployments.Errorf(deployments.CodeNotFound, "the state has no resource %s%s", word, hint)
}

// NamedResources returns what the flags that select resources name, by flag: URNs and patterns as they are, and the URN
// of the only resource of the state that has a name. A name that the state does not have stays: the update refuses it.
func (s *Session) NamedResources(ctx context.Context, info deployments.StackInfo) (map[string][]string, error) {
	named := map[string][]string{}
	var list []apitype.ResourceV3
	for _, flag := range []string{"target", "exclude", "replace"} {
		for _, word := range s.Flags.StringSlice(flag) {
			if !strings.HasPrefix(word, urn.Prefix) && !strings.Contains(word, "*") {
				var err error
				if list == nil {
					if list, err = s.Resources(ctx, info, false); err != nil {
						return nil, err
					}
				}
				found, err := FindURN(list, word)
				if deployments.CodeOf(err) == deployments.CodeInvalid {
					return nil, deployments.Errorf(deployments.CodeInvalid, "--%s: %w", flag, err)
				}
				word = cmp.Or(string(found), word)
			}
			named[flag] = append(named[flag], word)
		}
	}
	return named, nil
}

// FindURNs returns the URNs that words mean.
func FindURNs(list []apitype.ResourceV3, words []string) ([]string, error) {
	var out []string
	for _, word := range words {
		u, err := FindURN(list, word)
		if err != nil {
			return nil, err
		}
		out = append(out, string(u))
	}
	return out, nil
}

// ExportSecrets returns the stack's secrets provider. With the service's own provider, no project is needed.
func (s *Session) ExportSecrets(
	ctx context.Context, name deployments.StackName, plain bool,
) (deployments.SecretsProvider, error) {
	if s.Project == nil && s.NeedProject() != nil || s.Project.Name() != name.Project {
		return deployments.SecretsProvider{Type: project.SecretsService}, nil
	}
	secrets, err := s.Secrets(name)
	if err != nil {
		return deployments.SecretsProvider{}, err
	}
	if !plain {
		return secrets.Describe()
	}
	return secrets.Provider(ctx)
}
