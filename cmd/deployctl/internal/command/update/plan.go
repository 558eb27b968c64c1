package update

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// planFormat is the number of the format of saved plans.
const planFormat = 1

// savedPlan is what a preview has shown, and all that this follows from. Values are digests: those of secrets are of
// their ciphertexts in the configuration file, or of the placeholder by which previews show them.
type savedPlan struct {
	Format int    `json:"deployctlPlan"`
	Stack  string `json:"stack"`
	// Base is the version of the stack, and State the digest of the state at that version.
	Base  int    `json:"base"`
	State string `json:"state,omitempty"`
	// Files are the digests of the project's files, the stack's configuration among them.
	Files   map[string]string      `json:"files"`
	Options planOptions            `json:"options"`
	Steps   map[string]plannedStep `json:"steps"`
}

// planOptions are the options of an update that decide what it does.
type planOptions struct {
	Refresh          bool     `json:"refresh,omitempty"`
	Targets          []string `json:"targets,omitempty"`
	TargetDependents bool     `json:"targetDependents,omitempty"`
	Excludes         []string `json:"excludes,omitempty"`
	ExcludeDependent bool     `json:"excludeDependents,omitempty"`
	Replace          []string `json:"replace,omitempty"`
	IgnoreProtect    bool     `json:"ignoreProtect,omitempty"`
	Adopt            []string `json:"adopt,omitempty"`
	Force            bool     `json:"force,omitempty"`
}

// plannedStep is what happens to one resource.
type plannedStep struct {
	Op      string   `json:"op"` // create, update, replace or delete
	Changes []string `json:"changes,omitempty"`
	Inputs  string   `json:"inputs,omitempty"` // their digest
}

// newPlan returns the plan of a request, without its steps.
func newPlan(
	ctx context.Context, s *console.Session, r deployments.UpdateRequest, stack deployments.StackInfo, path string,
) (savedPlan, error) {
	p := savedPlan{
		Format: planFormat, Stack: r.Stack.String(), Base: stack.Version, Files: map[string]string{},
		Options: planOptions{r.Refresh, r.Targets, r.TargetDependents, r.Excludes, r.ExcludeDependents, r.Replace,
			r.IgnoreProtect, r.Adopt, r.Force},
	}
	if stack.Version > 0 {
		state, err := s.Service.Export(ctx, r.Stack, stack.Version, deployments.SecretsProvider{}, false)
		if err != nil {
			return p, err
		}
		p.State = digestOf(state.Deployment)
	}
	bundle, err := s.Project.Gather()
	if err != nil {
		return p, err
	}
	for _, f := range bundle.Manifest.Files {
		p.Files[f.Path] = f.Digest
	}
	config, err := s.Project.Stack(r.Stack.Stack)
	if err != nil {
		return p, err
	}
	if text, err := os.ReadFile(config.Path); err == nil {
		p.Files[filepath.Base(config.Path)] = digestOf(text)
	}
	// The plan itself may be written into the project.
	maps.DeleteFunc(p.Files, func(name, _ string) bool {
		return filepath.Join(bundle.Root(), filepath.FromSlash(name)) == path
	})
	return p, nil
}

// steps returns what a preview shows.
func planSteps(state *projection.State) map[string]plannedStep {
	steps := map[string]plannedStep{}
	for _, row := range state.Rows {
		op := engine.StepKind(row.Op)
		if row.Op == projection.OpRetain {
			op = engine.StepDelete
		}
		if op = engine.PlannedKind(op); op == "" {
			continue
		}
		step := plannedStep{Op: string(op)}
		for _, c := range row.Changes {
			step.Changes = append(step.Changes, c.Path)
		}
		if row.Metadata.New != nil {
			step.Inputs = inputsDigest(row.Metadata.New)
		}
		steps[row.URN] = step
	}
	return steps
}

// inputsDigest returns a digest of inputs as events show them, without secrets.
func inputsDigest(s *apitype.StepEventStateMetadata) string {
	text, err := json.Marshal(s.Inputs)
	if err != nil {
		return ""
	}
	return digestOf(text)
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// savePlan writes a plan to --save-plan.
func savePlan(
	ctx context.Context, s *console.Session, r deployments.UpdateRequest, stack deployments.StackInfo,
	state *projection.State,
) error {
	path := pathOf(s, "save-plan")
	if path == "" {
		return nil
	}
	p, err := newPlan(ctx, s, r, stack, path)
	if err != nil {
		return err
	}
	p.Steps = planSteps(state)
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(p); err != nil {
		return err
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "--save-plan: %w", err)
	}
	s.Note(fmt.Sprintf("Wrote the plan to %s. deployctl up --plan %s makes these changes only: it stops "+
		"before the first one that is not among them.",
		s.Flags.String("save-plan"), s.Flags.String("save-plan")))
	return nil
}

// pathOf returns the path that a flag gives, relative to the command's directory; "" without the flag.
func pathOf(s *console.Session, flag string) string {
	path := s.Flags.String(flag)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.WorkDir, path)
}

// followPlan limits a request to the plan of --plan. It fails, with what differs, if anything is not as it was when the
// plan was made, or if a preview shows anything else now.
func followPlan(
	ctx context.Context, s *console.Session, r *deployments.UpdateRequest, stack deployments.StackInfo,
) error {
	path := pathOf(s, "plan")
	if path == "" {
		return nil
	}
	var plan savedPlan
	text, err := os.ReadFile(path) //nolint:gosec // named by the user
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return deployments.Errorf(deployments.CodeInvalid, "--plan: there is no file %s; make a plan with deployctl "+
			"preview --save-plan %s", s.Flags.String("plan"), s.Flags.String("plan"))
	case err != nil:
		return deployments.Errorf(deployments.CodeInvalid, "--plan: %w", err)
	}
	if json.Unmarshal(text, &plan) != nil || plan.Format != planFormat {
		return deployments.Errorf(deployments.CodeInvalid, "%s is not a plan that this version of deployctl has saved",
			s.Flags.String("plan"))
	}
	now, err := newPlan(ctx, s, *r, stack, path)
	if err != nil {
		return err
	}
	if why := plan.differs(now); why != "" {
		return diverges(why)
	}
	limit := engine.SavedPlan{Steps: map[urn.URN]engine.StepKind{}}
	for u, step := range plan.Steps {
		limit.Steps[urn.URN(u)] = engine.StepKind(step.Op)
	}
	r.Plan, r.BaseVersion = &limit, &plan.Base
	state, err := quietPreview(ctx, s, *r)
	if err != nil {
		return err
	}
	if why := stepsDiffer(plan.Steps, planSteps(state)); why != "" {
		return diverges(why)
	}
	return nil
}

func diverges(why string) error {
	return deployments.Errorf(deployments.CodeConflict, "nothing was changed, because the plan does not hold any more: "+
		"%s; preview again with --save-plan", why)
}

// differs says what has changed since a plan was made; "" if nothing has.
func (p savedPlan) differs(now savedPlan) string {
	options, _ := json.Marshal(p.Options)
	optionsNow, _ := json.Marshal(now.Options)
	switch {
	case p.Stack != now.Stack:
		return fmt.Sprintf("it is of the stack %s, not of %s", p.Stack, now.Stack)
	case p.Base != now.Base:
		return fmt.Sprintf("the stack is at version %d, and was at %d", now.Base, p.Base)
	case p.State != now.State:
		return fmt.Sprintf("the state of version %d is another one", p.Base)
	case !bytes.Equal(options, optionsNow):
		return fmt.Sprintf("it was made with the options %s, and this command has %s", options, optionsNow)
	}
	return changedFile(p.Files, now.Files)
}

// changedFile tells of one file whose digest differs; "" if none does.
func changedFile(before, now map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if digest, there := now[name]; !there {
			return "the project has no file " + name + " any more"
		} else if digest != before[name] {
			return name + " has changed"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, there := before[name]; !there {
			return "the project has a new file, " + name
		}
	}
	return ""
}

// stepsDiffer says how what a preview shows now differs from what is planned; "" if it does not.
func stepsDiffer(planned, now map[string]plannedStep) string {
	all := maps.Clone(planned)
	maps.Copy(all, now)
	for _, u := range slices.Sorted(maps.Keys(all)) {
		was, is := planned[u], now[u]
		switch {
		case was.Op == "":
			return fmt.Sprintf("an update would now %s %s, which the plan leaves as it is", is.Op, u)
		case is.Op == "":
			return fmt.Sprintf("an update would now leave %s as it is, and the plan says %s", u, was.Op)
		case was.Op != is.Op:
			return fmt.Sprintf("an update would now %s %s, and the plan says %s", is.Op, u, was.Op)
		case !slices.Equal(was.Changes, is.Changes):
			return fmt.Sprintf("an update would now change %s of %s, and the plan says %s",
				strings.Join(is.Changes, ", "), u, strings.Join(was.Changes, ", "))
		case was.Inputs != is.Inputs:
			return "the inputs of " + u + " are other ones now"
		}
	}
	return ""
}

// quietPreview runs a preview of a request and shows nothing of it but an error.
func quietPreview(ctx context.Context, s *console.Session, r deployments.UpdateRequest) (*projection.State, error) {
	r.DryRun, r.RequestID, r.Message, r.BaseVersion, r.Plan = true, newRequestID(), "", nil, nil
	accepted, err := s.Service.Submit(ctx, r)
	if err != nil {
		return nil, err
	}
	state := projection.NewState()
	err = s.Service.Watch(ctx, accepted.Update, func(e deployments.WatchEvent) error {
		state.Apply(e)
		return nil
	})
	switch {
	case err != nil:
		if ctx.Err() != nil {
			abandon(s, accepted.Update)
		}
		return nil, err
	case state.End == nil || state.End.Status != deployments.StatusSucceeded:
		why := "its preview has no end"
		if state.End != nil {
			why = "its preview fails: " + state.End.Error
		}
		return nil, diverges(why)
	}
	return state, nil
}
