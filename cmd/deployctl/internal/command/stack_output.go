package command

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/urfave/cli/v2"
)

func stackOutputCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "output", Usage: "print the stack's outputs, or one of them", ArgsUsage: "[NAME]",
		Flags:  onStack(jsonFlag, showSecretsFlag),
		Action: action(s, runStackOutput),
	}
}

func runStackOutput(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	outputs, err := s.outputs(ctx, info.Stack)
	if err != nil {
		return err
	}
	if name := s.flags.Args().First(); name != "" {
		value, ok := outputs[name]
		if !ok {
			return deployments.Errorf(deployments.CodeNotFound, "stack %s has no output %q%s", info.Stack, name,
				didYouMean(name, sorted(outputs)))
		}
		if s.flags.Bool("json") {
			return s.sayJSON(value)
		}
		s.say("%s", s.shown(value))
		return nil
	}
	if s.flags.Bool("json") {
		return s.sayJSON(outputs)
	}
	return s.sayOutputs(outputs)
}

// sayOutputs prints a table of outputs. On a screen, a list or an object that does not fit into its row stands below
// the table, with a line for each of its values.
func (s *session) sayOutputs(outputs map[string]any) error {
	rows, below := [][]string{{"OUTPUT", "VALUE"}}, []string(nil)
	for _, name := range sorted(outputs) {
		text := bare(outputs[name])
		if _, plain := outputs[name].(string); !plain && s.Screen != nil {
			if columns, _ := s.Screen.Size(); display.Widest(text) > columns/2 {
				below, text = append(below, name), "(below)"
			}
		}
		rows = append(rows, []string{name, text})
	}
	if err := s.sayTable(rows); err != nil {
		return err
	}
	for _, name := range below {
		s.say("\n%s: %s", safetext.Line(name), s.shown(outputs[name]))
	}
	return nil
}

// shown formats a value for people, and for scripts in one line.
func (s *session) shown(value any) string {
	if _, text := value.(string); text || s.Screen == nil {
		return bare(value)
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return bare(value)
	}
	return string(text)
}

// outputs returns the stack's outputs, from its exported deployment.
func (s *session) outputs(ctx context.Context, name deployments.StackName) (map[string]any, error) {
	show := s.flags.Bool("show-secrets")
	provider, err := s.exportSecrets(ctx, name, show)
	if err != nil {
		return nil, err
	}
	untyped, err := s.service.Export(ctx, name, 0, provider, show)
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
				outputs[key] = open(value)
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

// open replaces secrets by their plaintext values if the export has them, else by "[secret]", and unknown values by
// "(unknown)".
func open(value any) any {
	switch v := value.(type) {
	case string:
		if v == unknownText {
			return "(unknown)"
		}
	case []any:
		for i := range v {
			v[i] = open(v[i])
		}
	case map[string]any:
		if v[signatureKey] != secretMark {
			for key := range v {
				v[key] = open(v[key])
			}
			return v
		}
		var plain any
		if text, ok := v["plaintext"].(string); ok && json.Unmarshal([]byte(text), &plain) == nil {
			return open(plain)
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
