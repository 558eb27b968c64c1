package update

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/urfave/cli/v2"
)

// OrphansCommand returns deployctl stack orphans.
func OrphansCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "orphans", Usage: "list what bears the stack's mark, or a name that was generated for it, and is in no state",
		Description: "It runs a preview of a refresh: providers are asked, and nothing is changed. Of the types in the " +
			"stack's state it lists what their providers, or settle rules, can list by the stack's mark, and looks under the " +
			"names that replacements and lost creates have generated.",
		Flags:  console.OnStack(console.JSONFlag, console.ConfigFileFlag),
		Action: console.Action(s, runOrphans),
	}
}

// RebuildCommand returns deployctl stack rebuild.
func RebuildCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "rebuild", Usage: "list what up --adopt would take into a stack whose state was lost",
		Description: "It runs a preview, and writes nothing. It lists which declared resources were found, and whose they " +
			"are; which were not, and why; and what bears the stack's mark and is declared by nobody. deployctl up --adopt " +
			"then rebuilds the state.",
		Flags: updateFlags(
			&cli.BoolFlag{Name: "dry-run", Usage: "required: rebuild only lists; deployctl up --adopt does the work"}),
		Action: console.Action(s, runRebuild),
	}
}

// survey is what a preview that surveys has told.
type survey struct {
	Stack     string    `json:"stack"`
	Found     []exists  `json:"found"`
	NotFound  []missing `json:"notFound"`
	Orphans   []orphan  `json:"orphans"`
	NotListed []missing `json:"notListed"`
	Errors    []string  `json:"errors"` // what kept the preview from looking for the rest

	found    map[string]engine.Found // by URN
	imported map[[2]string]bool      // packages and ids
	failed   bool                    // an error was told
}

// exists is a declared resource that was found.
type exists struct {
	URN     string `json:"urn"`
	Type    string `json:"type"`
	ID      string `json:"id"`
	Foreign bool   `json:"foreign"`
	Owner   string `json:"owner,omitempty"`
}

// missing is a declared resource that was not found, or a type that was not listed.
type missing struct {
	URN  string `json:"urn,omitempty"`
	Type string `json:"type"`
	Why  string `json:"why"`
}

// orphan is what exists, is the stack's, and is not in its state.
type orphan struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Why  string `json:"why"`
}

// runSurvey runs a preview that surveys, and returns what it has told, and how it ended.
func runSurvey(ctx context.Context, s *console.Session, r deployments.UpdateRequest) (*survey, error) {
	r.DryRun, r.Survey, r.RequestID, r.OnBusy = true, true, newRequestID(), deployments.OnBusyQueue
	accepted, err := submit(ctx, s, r)
	if err != nil {
		return nil, err
	}
	told := &survey{Stack: r.Stack.String(), Found: []exists{}, NotFound: []missing{}, Orphans: []orphan{},
		NotListed: []missing{}, Errors: []string{}, found: map[string]engine.Found{}, imported: map[[2]string]bool{}}
	var end *deployments.UpdateInfo
	err = s.Service.Watch(ctx, accepted.Update, func(e deployments.WatchEvent) error {
		if e.End != nil {
			end = e.End
		}
		if e.Event != nil {
			told.take(*e.Event)
		}
		return nil
	})
	switch {
	case err != nil && ctx.Err() != nil:
		abandon(s, accepted.Update)
		return nil, err
	case err != nil:
		return nil, err
	case end == nil:
		return nil, errors.New("the event log ended before the preview did")
	}
	told.settle()
	if end.Status != deployments.StatusSucceeded && !told.failed {
		told.Errors = append(told.Errors, cmp.Or(end.Error, "it was "+end.Status))
	}
	return told, console.ExitOfEnd(*end)
}

// take takes in an event.
func (t *survey) take(e apitype.EngineEvent) {
	switch {
	case e.ResOutputsEvent != nil:
		if m := e.ResOutputsEvent.Metadata; m.Op == apitype.OpImport && m.New != nil {
			t.imported[[2]string{packageOf(m.URN), m.New.ID}] = true
		}
	case e.DiagnosticEvent != nil:
		t.diagnostic(*e.DiagnosticEvent)
	}
}

func packageOf(u string) string { return string(token.Package(tokens.Type(typeOf(u)))) }

// typeOf returns the type in a URN, which comes from the service.
func typeOf(u string) string {
	if !urn.URN(u).IsValid() {
		return ""
	}
	return string(urn.URN(u).Type())
}

// declares reports whether a URN is that of a resource that may be found: not of the stack, nor of a provider.
func (*survey) declares(u string) bool {
	t := tokens.Type(typeOf(u))
	return t != "" && t != resource.RootStackType && !token.IsProvider(t)
}

func (t *survey) diagnostic(d apitype.DiagnosticEvent) {
	text := strings.TrimSpace(d.Message)
	if f, ok := engine.ParseFound(urn.URN(d.URN), text); ok {
		if _, told := t.found[d.URN]; !told {
			t.Found = append(t.Found, exists{URN: d.URN, Type: typeOf(d.URN), ID: f.ID, Foreign: f.Foreign, Owner: f.Owner})
		}
		t.found[d.URN] = f
		t.imported[[2]string{packageOf(d.URN), f.ID}] = true
		return
	}
	f, ok := deployments.ParseFinding(text)
	t.failed = t.failed || !ok && d.Severity == "error"
	switch {
	case ok && f.Kind == deployments.FoundOrphan:
		t.Orphans = append(t.Orphans, orphan{f.Type, f.ID, f.Why})
	case ok && f.Kind == deployments.NotListed:
		t.NotListed = append(t.NotListed, missing{Type: f.Type, Why: f.Why})
	case ok:
		t.NotFound = append(t.NotFound, missing{d.URN, f.Type, f.Why})
	case d.Severity == "error" && t.declares(d.URN):
		t.NotFound = append(t.NotFound, missing{d.URN, typeOf(d.URN), text})
	case d.Severity == "error":
		t.Errors = append(t.Errors, text)
	}
}

// settle leaves out what was told twice, and orphans that the program declares after all.
func (t *survey) settle() {
	slices.SortFunc(t.Found, func(a, b exists) int { return cmp.Compare(a.URN, b.URN) }) // they come as they are found
	t.NotFound, t.NotListed = sorted(t.NotFound), sorted(t.NotListed)
	var left []orphan
	for _, o := range once(t.Orphans) {
		if !t.imported[[2]string{string(token.Package(tokens.Type(o.Type))), o.ID}] {
			left = append(left, o)
		}
	}
	slices.SortFunc(left, func(a, b orphan) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID)) })
	t.Orphans = append([]orphan{}, left...)
}

// sorted returns the different elements of a list, by type and name.
func sorted(list []missing) []missing {
	list = once(list)
	slices.SortStableFunc(list, func(a, b missing) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.URN, b.URN))
	})
	return list
}

// once returns the different elements of a list, in their order.
func once[T comparable](list []T) []T {
	out, seen := []T{}, map[T]bool{}
	for _, e := range list {
		if !seen[e] {
			out = append(out, e)
		}
		seen[e] = true
	}
	return out
}

func runOrphans(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	list, err := s.Resources(ctx, info, false)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(r apitype.ResourceV3) bool { return r.Custom && !token.IsProvider(r.Type) }) {
		return deployments.Errorf(deployments.CodeInvalid, "%s has nothing in its state from which to look; deployctl stack "+
			"rebuild --dry-run looks for what its program declares", info.Stack)
	}
	if err := s.NeedProject(); err != nil {
		return err
	}
	r := deployments.UpdateRequest{Stack: info.Stack, Kind: engine.KindRefresh, Initiator: console.Initiator(),
		ContinueOnError: true}
	if err := fillRequest(ctx, s, &r, nil); err != nil {
		return err
	}
	told, err := runSurvey(ctx, s, r)
	if told == nil {
		return err
	}
	if s.Flags.Bool("json") {
		return errors.Join(s.SayJSON(struct {
			Stack     string    `json:"stack"`
			Orphans   []orphan  `json:"orphans"`
			NotListed []missing `json:"notListed"`
			Errors    []string  `json:"errors"`
		}{told.Stack, told.Orphans, told.NotListed, told.Errors}), err)
	}
	if len(told.Orphans) == 0 && err == nil {
		s.Say("Nothing was found that is %s's and not in its state.", told.Stack)
	}
	told.sayOrphans(s, "Exists, is the stack's, and is not in its state:")
	told.sayErrors(s)
	return err
}

func runRebuild(ctx context.Context, s *console.Session) error {
	if !s.Flags.Bool("dry-run") {
		return deployments.Errorf(deployments.CodeInvalid, "deployctl up --adopt rebuilds the state; pass --dry-run to see "+
			"what it would find")
	}
	if err := s.NeedProject(); err != nil {
		return err
	}
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	r, err := newRequest(ctx, s, engine.KindUp, info, nil)
	if err != nil {
		return err
	}
	r.Adopt, r.ContinueOnError = []string{"**"}, true
	told, err := runSurvey(ctx, s, r)
	if told == nil {
		return err
	}
	if s.Flags.Bool("json") {
		return errors.Join(s.SayJSON(told), err)
	}
	told.sayFound(s)
	told.sayOrphans(s, "Bears the stack's mark, and is declared by nobody:")
	told.sayErrors(s)
	s.Say("Nothing was written. deployctl up --adopt takes in what was found, and creates the rest.")
	return err
}

// sayFound prints which declared resources were found, and which were not.
func (t *survey) sayFound(s *console.Session) {
	for _, foreign := range []bool{false, true} {
		heading := "Found, and this stack's:"
		if foreign {
			heading = "Found, and another owner's, or of nobody who is known; --adopt takes it over:"
		}
		for _, e := range t.Found {
			if e.Foreign != foreign {
				continue
			}
			if heading != "" {
				s.Say("%s", heading)
			}
			heading = ""
			line := "  " + e.Type + " " + snapshot.NameOf(urn.URN(e.URN)) + "  " + e.ID
			if e.Owner != "" {
				line += "  (" + e.Owner + ")"
			}
			s.Say("%s", safetext.Message(line))
		}
	}
	if len(t.NotFound) > 0 {
		s.Say("Not found:")
	}
	for _, m := range t.NotFound {
		s.Say("%s", safetext.Message("  "+m.Type+" "+snapshot.NameOf(urn.URN(m.URN))+": "+m.Why))
	}
}

// sayOrphans prints what is left, and what to do about it.
func (t *survey) sayOrphans(s *console.Session, heading string) {
	if len(t.Orphans) > 0 {
		s.Say("%s", heading)
	}
	for _, o := range t.Orphans {
		s.Say("%s", safetext.Message("  "+o.Type+" "+o.ID+": "+o.Why))
	}
	if len(t.Orphans) > 0 {
		s.Say("Nothing was deleted. Leave what another stack has (deployctl state move). Take in what you need with " +
			"deployctl import TYPE NAME ID, and what is to be deleted with deployctl import TYPE NAME ID --protect=false: " +
			"the next deployctl up deletes what no program declares and nothing protects. A bucket must be empty by then.")
	}
	for _, m := range t.NotListed {
		s.Say("%s", safetext.Message("Not listed: "+m.Type+": "+m.Why))
	}
}

// sayErrors prints why what was not found may be there all the same.
func (t *survey) sayErrors(s *console.Session) {
	if len(t.Errors) > 0 {
		s.Say("Not everything was looked for, because the preview failed:")
	}
	for _, text := range t.Errors {
		s.Say("%s", safetext.Message("  "+text))
	}
}
