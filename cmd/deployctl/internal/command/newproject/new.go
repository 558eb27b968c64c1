package newproject

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/configuration"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/stack"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/update"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/terminal/templates"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/urfave/cli/v2"
)

// Command returns deployctl new.
func Command(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "new", Usage: "make a project, and its first stack, from a template", ArgsUsage: "[TEMPLATE]",
		Description: "TEMPLATE is one of --list, a directory, or the address of a git repository such as " +
			"https://github.com/OWNER/REPOSITORY/tree/BRANCH/DIR, in the format of Pulumi's templates. The project is " +
			"made in the working directory, which must be empty.\n\nA template runs nothing while the project is made. " +
			"Its program runs with the first update: read it before, if you do not know its maker.",
		Flags: console.Common(
			&cli.BoolFlag{Name: "list", Aliases: []string{"l"}, Usage: "list the templates that deployctl has"},
			&cli.StringFlag{Name: "dir", Usage: "make the project in `DIR`, which is created if necessary"},
			&cli.StringFlag{Name: "name", Aliases: []string{"n"}, Usage: "the project's `NAME`; not set: the directory's"},
			&cli.StringFlag{Name: "description", Aliases: []string{"d"}, Usage: "the project's description, a line of " +
				"`TEXT`"},
			&cli.StringFlag{Name: "stack", Aliases: []string{"s"}, Usage: "the first `STACK`, or ORG/PROJECT/STACK; " +
				"not set: dev"},
			&cli.StringSliceFlag{Name: "config", Aliases: []string{"c"},
				Usage: "set `KEY=VALUE` in the stack's configuration; may be repeated"},
			console.SecretsProviderFlag,
			&cli.BoolFlag{Name: "generate-only", Aliases: []string{"g"}, Usage: "make the files, and no stack"},
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "make the project in a directory that is not " +
				"empty, and replace files of the same name"},
			console.YesFlag, console.JSONFlag),
		Action: console.Action(s, runNew),
	}
}

// draft is a project that is being made.
type draft struct {
	dir      string
	template *templates.Template
	project  templates.Project
	stack    string
	config   []configuration.SetValue
	unset    []templates.Question // that got no answer
}

func runNew(ctx context.Context, s *console.Session) error {
	if s.Flags.Bool("list") {
		return listTemplates(s)
	}
	if _, err := project.ParseProvider(s.Flags.String("secrets-provider")); err != nil {
		return err
	}
	d := &draft{dir: s.WorkDir}
	if dir := s.Flags.String("dir"); dir != "" {
		d.dir = s.Path(dir)
	}
	if err := checkEmpty(s, d.dir); err != nil {
		return err
	}
	var err error
	if d.template, err = template(ctx, s); err != nil {
		return err
	}
	if err := s.MustAsk(); err != nil {
		return err
	}
	if err := askProject(ctx, s, d); err != nil {
		return err
	}
	files, err := d.template.Render(d.project)
	if err != nil {
		return err
	}
	if err := templates.Write(d.dir, files); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "cannot write the project, some of whose files may be in %s "+
			"now: %w", d.dir, err)
	}
	if s.Project, err = project.Find(d.dir); err != nil {
		return err
	}
	s.Say("Created project %s in %s from the template %s.", s.Project.Name(), s.Project.Dir, d.template.Name)
	if !s.Flags.Bool("generate-only") {
		if err := firstStack(ctx, s, d); err != nil {
			return deployments.Errorf(deployments.CodeOf(err), "the project has no configured stack yet: %w. When that "+
				"is solved, run deployctl stack init in %s", err, d.dir)
		}
	}
	nextSteps(s, d)
	return nil
}

func checkEmpty(s *console.Session, dir string) error {
	found, err := templates.Occupied(dir)
	if err == nil && found != "" && !s.Flags.Bool("force") {
		err = deployments.Errorf(deployments.CodeInvalid, "%s is not empty (it has %s): name another directory with "+
			"--dir, or pass --force, which replaces files of the same name", dir, found)
	}
	return err
}

// listTemplates prints the templates of this binary.
func listTemplates(s *console.Session) error {
	type listed struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	list, rows := []listed{}, [][]string{{"TEMPLATE", "DESCRIPTION"}}
	for _, name := range templates.Names {
		t, err := templates.Builtin(name)
		if err != nil {
			return err
		}
		list = append(list, listed{t.Name, t.Description})
		rows = append(rows, []string{t.Name, t.Description})
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	return s.SayTable(rows)
}

// template finds the template that the user names.
func template(ctx context.Context, s *console.Session) (*templates.Template, error) {
	name := s.Flags.Args().First()
	if name == "" {
		if !s.Asks() || s.Flags.Bool("yes") {
			return nil, deployments.Errorf(deployments.CodeInvalid, "name a template: one of %s, a directory, or the "+
				"address of a git repository", strings.Join(templates.Names, ", "))
		}
		if err := listTemplates(s); err != nil {
			return nil, err
		}
		answer, err := askFor(ctx, s, "\nTemplate", templates.Names[0])
		if err != nil {
			return nil, err
		}
		name = answer
	}
	switch {
	case slices.Contains(templates.Names, name):
		return templates.Builtin(name)
	case templates.IsAddress(name):
		s.Note("Fetching " + name + "…")
		return templates.Git(ctx, name, s.Asks())
	}
	if info, err := os.Stat(s.Path(name)); err == nil && info.IsDir() {
		return templates.FromDirectory(s.Path(name))
	}
	hint := console.DidYouMean(name, templates.Names)
	if hint == "" {
		hint = "; deployctl new --list lists those of deployctl"
	}
	return nil, deployments.Errorf(deployments.CodeInvalid, "%q is no template of deployctl, no directory and no address "+
		"of a git repository%s", name, hint)
}

// askFor asks for a value; empty input takes the suggested one.
func askFor(ctx context.Context, s *console.Session, what, suggested string) (string, error) {
	question := safetext.Text(what)
	if suggested != "" {
		question += " [" + safetext.Line(suggested) + "]"
	}
	answer, ok, err := s.Ask(ctx, question+": ")
	switch {
	case err != nil:
		return "", err
	case !ok && answer == "":
		return "", s.Declined()
	case answer == "":
		return suggested, nil
	}
	return answer, nil
}

// valueOf returns the value of a flag; not given, it asks for one, or takes the suggested one.
func valueOf(ctx context.Context, s *console.Session, flag, what, suggested string) (string, error) {
	if s.Flags.IsSet(flag) {
		return s.Flags.String(flag), nil
	}
	if s.Flags.Bool("yes") {
		return suggested, nil
	}
	return askFor(ctx, s, what, suggested)
}

// askProject finds out everything about the project before anything is made.
func askProject(ctx context.Context, s *console.Session, d *draft) (err error) {
	for {
		d.project.Name, err = valueOf(ctx, s, "name", "Project name", templates.ProjectName(d.dir))
		if err != nil {
			return err
		}
		err = deployments.ValidateName("project", d.project.Name)
		if err == nil || s.Flags.IsSet("name") || s.Flags.Bool("yes") {
			break
		}
		s.Note(err.Error())
	}
	if err != nil {
		return err
	}
	d.project.Description, err = valueOf(ctx, s, "description", "Project description", d.template.Default)
	if err != nil || s.Flags.Bool("generate-only") {
		return err
	}
	if d.stack, err = valueOf(ctx, s, "stack", "Stack name", "dev"); err != nil {
		return err
	}
	return askConfig(ctx, s, d)
}

// askConfig collects the configuration: of --config, and what the template asks for beyond that.
func askConfig(ctx context.Context, s *console.Session, d *draft) error {
	given, err := givenConfig(s, d)
	if err != nil {
		return err
	}
	for _, q := range d.template.Questions {
		if given[d.key(q.Key)] {
			continue
		}
		value, err := answer(ctx, s, q)
		if err != nil {
			return err
		}
		if value == "" {
			d.unset = append(d.unset, q)
			continue
		}
		d.config = append(d.config, configuration.SetValue{Key: q.Key, Value: value, Secret: q.Secret})
	}
	return nil
}

// givenConfig adds the values of --config, and returns which keys they have.
func givenConfig(s *console.Session, d *draft) (map[string]bool, error) {
	secret, given := map[string]bool{}, map[string]bool{}
	for _, q := range d.template.Questions {
		secret[d.key(q.Key)] = q.Secret
	}
	for _, pair := range s.Flags.StringSlice("config") {
		name, value, err := update.ConfigPair(pair)
		if err != nil {
			return nil, err
		}
		given[d.key(name)] = true
		d.config = append(d.config, configuration.SetValue{Key: name, Value: value, Secret: secret[d.key(name)]})
	}
	return given, nil
}

// key gives a key its namespace.
func (d *draft) key(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return d.template.NameOf(d.project) + ":" + name
}

// answer asks a question of the template. A secret is not shown while it is typed, and its default is not shown at all.
func answer(ctx context.Context, s *console.Session, q templates.Question) (string, error) {
	if s.Flags.Bool("yes") {
		return q.Default, nil
	}
	what := q.Key
	if q.Description != "" {
		what += " (" + q.Description + ")"
	}
	if !q.Secret {
		return askFor(ctx, s, what, q.Default)
	}
	value, err := s.AskHidden(safetext.Text(what) + ": ")
	if value == "" {
		value = q.Default
	}
	return value, err
}

// firstStack creates the project's first stack, with its configuration.
func firstStack(ctx context.Context, s *console.Session, d *draft) error {
	name, err := s.ParseStack(d.stack)
	if err != nil {
		return err
	}
	if s.Project == nil {
		return deployments.Errorf(deployments.CodeInvalid, "stack %s is not of project %s", name,
			d.template.NameOf(d.project))
	}
	if err := stack.InitStack(ctx, s, d.stack, name, s.Flags.String("secrets-provider"), true); err != nil {
		return err
	}
	secrets, err := s.Secrets(name)
	if err != nil {
		return err
	}
	for _, v := range d.config {
		if err := configuration.Set(ctx, secrets, v, false); err != nil {
			return err
		}
	}
	if len(d.config) == 0 {
		return nil
	}
	return secrets.Stack.Save()
}

// nextSteps prints what the user may do now.
func nextSteps(s *console.Session, d *draft) {
	if text := strings.TrimSpace(d.template.Quickstart); text != "" {
		s.Say("\n%s", d.project.Fill(text))
	}
	s.Say("\nNext:")
	if d.dir != s.WorkDir {
		s.Say("  cd %s", s.Flags.String("dir"))
	}
	if s.Flags.Bool("generate-only") {
		s.Say("  deployctl stack init dev")
	}
	for _, q := range d.unset {
		command := "deployctl config set " + q.Key
		if q.Secret {
			command += " --secret"
		}
		if q.Description != "" {
			command += "   # " + q.Description
		}
		s.Say("  %s", command)
	}
	s.Say("  deployctl up")
}
