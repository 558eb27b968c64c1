package update

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/configuration"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/urfave/cli/v2"
)

// SettleCommand returns deployctl settle.
func SettleCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "settle", Usage: "explain and try settle rules: how creates are found whose answer was lost",
		Subcommands: []*cli.Command{
			{
				Name: "explain", Usage: "show the stack's settle rules for a type, or for a resource and what they make of it",
				ArgsUsage: "TYPE|RESOURCE", Flags: console.OnStack(console.ConfigFileFlag),
				Description: "RESOURCE is a URN, or a name that only one resource has.",
				Action:      console.Action(s, runSettleExplain),
			},
			{
				Name: "try", Usage: "look for a resource that exists, as if the answer to its create had been lost",
				ArgsUsage: "RESOURCE", Flags: console.OnStack(console.ConfigFileFlag),
				Description: "RESOURCE is a URN, or a name that only one resource has. It runs a preview of a refresh: " +
					"providers are asked, and nothing is changed.",
				Action: console.Action(s, runSettleTry),
			},
		},
	}
}

func runSettleExplain(ctx context.Context, s *console.Session) error {
	secrets, err := configuration.Configured(ctx, s)
	if err != nil {
		return err
	}
	text, err := settleRules(secrets.Stack)
	if err != nil {
		return err
	}
	rules, err := settlerule.ParseStack(text)
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%s: %w", settlerule.StackKey, err)
	}
	word := s.Flags.Args().First()
	if strings.Count(word, ":") == 2 {
		return sayRules(s, word, rules.For(word), nil)
	}
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	list, err := s.Resources(ctx, info, false)
	if err != nil {
		return err
	}
	u, err := console.FindURN(list, word)
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.URN == u && !r.Delete {
			return sayRules(s, string(r.Type), rules.For(string(r.Type)), made(r, list))
		}
	}
	return deployments.Errorf(deployments.CodeNotFound, "%s is about to be deleted", u)
}

// settleRules returns the text of the stack's settle rules; that of none without any.
func settleRules(file interface {
	Get(config.Key, bool) (config.Value, bool, error)
}) (string, error) {
	key, err := config.ParseKey(settlerule.StackKey)
	if err != nil {
		return "", err
	}
	v, ok, err := file.Get(key, false)
	if err != nil || !ok || v.Secure() {
		return "{}", err
	}
	return v.Value(config.NopDecrypter)
}

// made tells what a rule makes of a resource of the state, and whether that is its id.
func made(r apitype.ResourceV3, list []apitype.ResourceV3) func(*settlerule.Rule) string {
	scope := settlerule.Scope{Inputs: stateValues(r.Inputs)}
	for _, p := range list {
		if r.Provider == string(p.URN)+"::"+string(p.ID) {
			scope.Config = stateValues(p.Inputs)
		}
	}
	return func(rule *settlerule.Rule) string {
		if rule.Read.IsZero() {
			return ""
		}
		id, err := rule.Read.Render(scope)
		var missing *settlerule.MissingError
		switch {
		case errors.As(err, &missing) && missing.Variable.Origin == settlerule.Value:
			return "a worker finds it out: `deployctl settle try`"
		case err != nil:
			return "it cannot be used: " + err.Error()
		case id == string(r.ID):
			return "it makes " + id + ", which is the resource's id"
		}
		return fmt.Sprintf("it makes %s, and the resource's id is %s", id, r.ID)
	}
}

// stateValues reads values of a state; what is secret in them is known to be secret, and nothing else.
func stateValues(values map[string]any) resource.PropertyMap {
	return resource.NewPropertyMapFromMapRepl(values, nil, func(v any) (resource.PropertyValue, bool) {
		object, ok := v.(map[string]any)
		if !ok || object[resource.SigKey] != resource.SecretSig {
			return resource.PropertyValue{}, false
		}
		return resource.MakeSecret(resource.NewProperty("[secret]")), true
	})
}

// sayRules prints the rules of a type; tell, which may be nil, says more of each.
func sayRules(s *console.Session, t string, set settlerule.Set, tell func(*settlerule.Rule) string) error {
	if len(set.Rules) == 0 {
		s.Say("%s has no rule for %s. If the answer to its create is lost, a rule of its provider or of the catalogue "+
			"decides.", settlerule.StackKey, t)
		return nil
	}
	for i := range set.Rules {
		rule := &set.Rules[i]
		s.Say("%d. %s", i+1, rule.Explain())
		if tell != nil {
			if text := tell(rule); text != "" {
				s.Say("   %s", text)
			}
		}
	}
	return nil
}

func runSettleTry(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	list, err := s.Resources(ctx, info, false)
	if err != nil {
		return err
	}
	u, err := console.FindURN(list, s.Flags.Args().First())
	if err != nil {
		return err
	}
	if err := s.NeedProject(); err != nil {
		return err
	}
	r := deployments.UpdateRequest{
		Stack: info.Stack, Kind: engine.KindRefresh, DryRun: true, TrySettle: true, RequestID: newRequestID(),
		Initiator: console.Initiator(), OnBusy: deployments.OnBusyQueue, Targets: []string{string(u)},
	}
	if err := configure(ctx, s, &r); err != nil {
		return err
	}
	if s.Service.Embedded {
		r.Environment = programEnvironment(s.Environ)
	}
	accepted, err := submit(ctx, s, r)
	if err != nil {
		return err
	}
	return follow(ctx, s, accepted, r.Kind, nil)
}
