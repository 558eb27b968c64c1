package update

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/catalogue"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/configuration"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
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
				Name: "explain", Usage: "show the settle rules for a type, or for a resource and what they make of it",
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
	own, err := stackkeys.Read(func(key string) string { return plainText(secrets.Stack, key) })
	if err != nil {
		return err
	}
	word := s.Flags.Args().First()
	if strings.Count(word, ":") == 2 {
		return sayRules(ctx, s, word, own, nil)
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
			return sayRules(ctx, s, string(r.Type), own, made(r, list))
		}
	}
	return deployments.Errorf(deployments.CodeNotFound, "%s is about to be deleted", u)
}

// plainText returns a value of a stack's configuration; "" if there is none, or it is secret.
func plainText(stack *project.Stack, name string) string {
	key, err := config.ParseKey(name)
	if err != nil {
		return ""
	}
	v, ok, err := stack.Get(key, false)
	if err != nil || !ok || v.Secure() {
		return ""
	}
	text, err := v.Value(config.NopDecrypter)
	if err != nil {
		return ""
	}
	return text
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

// sayRules prints the rules of a type: those of the stack or, if it has none, those of the catalogue. tell, which may
// be nil, says more of each.
func sayRules(
	ctx context.Context, s *console.Session, t string, own stackkeys.Settings, tell func(*settlerule.Rule) string,
) error {
	set := own.Rules.For(t)
	if len(set.Rules) == 0 {
		listed, found, err := catalogue.New().Rules(ctx, t, "", nil)
		if err != nil {
			return err
		}
		pkg, module, _ := strings.Cut(t, ":")
		switch {
		case found:
		case catalogue.AsksPlugins(pkg) && strings.HasPrefix(module, "index/"):
			s.Say("%s has no rule for %s. Whether the catalogue has one, its plugin knows, which makes the package at run "+
				"time: try a resource of the type with `deployctl settle try`.", stackkeys.Settle, t)
			return nil
		default:
			s.Say("Neither %s nor the catalogue has a rule for %s. If its provider has none either, and the answer to a create "+
				"is lost, a person decides what became of it.", stackkeys.Settle, t)
			return nil
		}
		s.Say("%s has no rule for %s. These are the catalogue's.", stackkeys.Settle, t)
		set = listed
	}
	for i := range set.Rules {
		rule := &set.Rules[i]
		s.Say("%d. %s", i+1, rule.Explain())
		if rule.NeedsMark() && !own.Marks {
			s.Say("   It needs marks, which the stack does not ask for: deployctl config set %s true", stackkeys.Mark)
		}
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
	if err := fillRequest(ctx, s, &r, nil); err != nil {
		return err
	}
	accepted, err := submit(ctx, s, r)
	if err != nil {
		return err
	}
	return follow(ctx, s, accepted, r.Kind, nil)
}
