package stack

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/urfave/cli/v2"
)

// outputCommand returns deployctl output.
func outputCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "output", Usage: "print the stack's outputs, or one of them", ArgsUsage: "[NAME]",
		Flags:  console.OnStack(console.JSONFlag, console.ShowSecretsFlag),
		Action: console.Action(s, runOutput),
	}
}

func runOutput(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	outputs, err := Outputs(ctx, s, info.Stack)
	if err != nil {
		return err
	}
	if name := s.Flags.Args().First(); name != "" {
		value, ok := outputs[name]
		if !ok {
			return deployments.Errorf(deployments.CodeNotFound, "stack %s has no output %q%s", info.Stack, name,
				console.DidYouMean(name, console.Sorted(outputs)))
		}
		if s.Flags.Bool("json") {
			return s.SayJSON(value)
		}
		s.Say("%s", shown(s, value))
		return nil
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(outputs)
	}
	return sayOutputs(s, outputs)
}

// sayOutputs prints a table of outputs. On a screen, a list or an object that does not fit into its row stands below
// the table, with a line for each of its values.
func sayOutputs(s *console.Session, outputs map[string]any) error {
	rows, below := [][]string{{"OUTPUT", "VALUE"}}, []string(nil)
	for _, name := range console.Sorted(outputs) {
		text := bare(outputs[name])
		if _, plain := outputs[name].(string); !plain && s.Screen != nil {
			if columns, _ := s.Screen.Size(); display.Widest(text) > columns/2 {
				below, text = append(below, name), "(below)"
			}
		}
		rows = append(rows, []string{name, text})
	}
	if err := s.SayTable(rows); err != nil {
		return err
	}
	for _, name := range below {
		s.Say("\n%s: %s", safetext.Line(name), shown(s, outputs[name]))
	}
	return nil
}

// shown formats a value for people, and for scripts in one line.
func shown(s *console.Session, value any) string {
	if _, text := value.(string); text || s.Screen == nil {
		return bare(value)
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return bare(value)
	}
	return string(text)
}

// Outputs returns the stack's outputs, from its exported deployment.
func Outputs(ctx context.Context, s *console.Session, name deployments.StackName) (map[string]any, error) {
	show := s.Flags.Bool("show-secrets")
	provider, err := s.ExportSecrets(ctx, name, show)
	if err != nil {
		return nil, err
	}
	untyped, err := s.Service.Export(ctx, name, 0, provider, show)
	if err != nil {
		return nil, err
	}
	var deployment apitype.DeploymentV3
	if err := json.Unmarshal(untyped.Deployment, &deployment); err != nil {
		return nil, deployments.Errorf(deployments.CodeFormat, "the stack's deployment cannot be read: %w", err)
	}
	outputs := map[string]any{}
	for _, r := range deployment.Resources {
		if r.Type == "pulumi:pulumi:Stack" && !r.Delete {
			for key, value := range r.Outputs {
				outputs[key] = Opened(value)
			}
		}
	}
	return outputs, nil
}

// Marks of secrets in a deployment. Source: the deployment format.
const (
	signatureKey = "4dabf18193072939515e22adb298388d"
	secretMark   = "1b47061264138c4ac30d75fd1eb44270"
)

// unknownText is the value in a deployment of a property that was unknown when the deployment was written. Source:
// sig.UnknownStringValue.
const unknownText = sig.UnknownStringValue

// Opened replaces secrets by their plaintext values if the export has them, else by "[secret]", and unknown values by
// "(unknown)".
func Opened(value any) any {
	switch v := value.(type) {
	case string:
		if v == unknownText {
			return "(unknown)"
		}
	case []any:
		for i := range v {
			v[i] = Opened(v[i])
		}
	case map[string]any:
		if v[signatureKey] != secretMark {
			for key := range v {
				v[key] = Opened(v[key])
			}
			return v
		}
		var plain any
		if text, ok := v["plaintext"].(string); ok && json.Unmarshal([]byte(text), &plain) == nil {
			return Opened(plain)
		}
		return "[secret]"
	}
	return value
}

// bare formats text as it is and any other value as JSON.
func bare(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
