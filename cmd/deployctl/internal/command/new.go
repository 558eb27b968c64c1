package command

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/terminal/templates"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/urfave/cli/v2"
)

func newCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "new", Usage: "make a project, and its first stack, from a template", ArgsUsage: "[TEMPLATE]",
		Description: "TEMPLATE is one of --list, a directory, or the address of a git repository such as " +
			"https://github.com/OWNER/REPOSITORY/tree/BRANCH/DIR, in the format of Pulumi's templates. The project is " +
			"made in the working directory, which must be empty.\n\nA template runs nothing while the project is made. " +
			"Its program runs with the first update: read it before, if you do not know its maker.",
		Flags: common(
			&cli.BoolFlag{Name: "list", Aliases: []string{"l"}, Usage: "list the templates that deployctl has"},
			&cli.StringFlag{Name: "dir", Usage: "make the project in `DIR`, which is created if necessary"},
			&cli.StringFlag{Name: "name", Aliases: []string{"n"}, Usage: "the project's `NAME`; not set: the directory's"},
			&cli.StringFlag{Name: "description", Aliases: []string{"d"}, Usage: "the project's description, a line of " +
				"`TEXT`"},
			&cli.StringFlag{Name: "stack", Aliases: []string{"s"}, Usage: "the first `STACK`, or ORG/PROJECT/STACK; " +
				"not set: dev"},
			&cli.StringSliceFlag{Name: "config", Aliases: []string{"c"},
				Usage: "set `KEY=VALUE` in the stack's configuration; may be repeated"},
			secretsProviderFlag,
			&cli.BoolFlag{Name: "generate-only", Aliases: []string{"g"}, Usage: "make the files, and no stack"},
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "make the project in a directory that is not " +
				"empty, and replace files of the same name"},
			yesFlag, jsonFlag),
		Action: action(s, runNew),
	}
}

// draft is a project that is being made.
type draft struct {
	dir      string
	template *templates.Template
	project  templates.Project
	stack    string
	config   []setValue
	unset    []templates.Question // that got no answer
}

func runNew(ctx context.Context, s *session) error {
	if s.flags.Bool("list") {
		return s.listTemplates()
	}
	if _, err := project.ParseProvider(s.flags.String("secrets-provider")); err != nil {
		return err
	}
	d := &draft{dir: s.dir}
	if dir := s.flags.String("dir"); dir != "" {
		d.dir = s.path(dir)
	}
	if err := s.checkEmpty(d.dir); err != nil {
		return err
	}
	var err error
	if d.template, err = s.template(ctx); err != nil {
		return err
	}
	if err := s.mustAsk(); err != nil {
		return err
	}
	if err := s.askProject(ctx, d); err != nil {
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
	if s.project, err = project.Find(d.dir); err != nil {
		return err
	}
	s.say("Created project %s in %s from the template %s.", s.project.Name(), s.project.Dir, d.template.Name)
	if !s.flags.Bool("generate-only") {
		if err := s.firstStack(ctx, d); err != nil {
			return deployments.Errorf(deployments.CodeOf(err), "the project has no configured stack yet: %w. When that "+
				"is solved, run deployctl stack init in %s", err, d.dir)
		}
	}
	s.nextSteps(d)
	return nil
}

func (s *session) checkEmpty(dir string) error {
	found, err := templates.Occupied(dir)
	if err == nil && found != "" && !s.flags.Bool("force") {
		err = deployments.Errorf(deployments.CodeInvalid, "%s is not empty (it has %s): name another directory with "+
			"--dir, or pass --force, which replaces files of the same name", dir, found)
	}
	return err
}

// listTemplates prints the templates of this binary.
func (s *session) listTemplates() error {
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
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	return s.sayTable(rows)
}

// template finds the template that the user names.
func (s *session) template(ctx context.Context) (*templates.Template, error) {
	name := s.flags.Args().First()
	if name == "" {
		if !s.asks() || s.flags.Bool("yes") {
			return nil, deployments.Errorf(deployments.CodeInvalid, "name a template: one of %s, a directory, or the "+
				"address of a git repository", strings.Join(templates.Names, ", "))
		}
		if err := s.listTemplates(); err != nil {
			return nil, err
		}
		answer, err := s.askFor(ctx, "\nTemplate", templates.Names[0])
		if err != nil {
			return nil, err
		}
		name = answer
	}
	switch {
	case slices.Contains(templates.Names, name):
		return templates.Builtin(name)
	case templates.IsAddress(name):
		s.note("Fetching " + name + "…")
		return templates.Git(ctx, name, s.asks())
	}
	if info, err := os.Stat(s.path(name)); err == nil && info.IsDir() {
		return templates.FromDirectory(s.path(name))
	}
	hint := didYouMean(name, templates.Names)
	if hint == "" {
		hint = "; deployctl new --list lists those of deployctl"
	}
	return nil, deployments.Errorf(deployments.CodeInvalid, "%q is no template of deployctl, no directory and no address "+
		"of a git repository%s", name, hint)
}

// askFor asks for a value; empty input takes the suggested one.
func (s *session) askFor(ctx context.Context, what, suggested string) (string, error) {
	question := safetext.Text(what)
	if suggested != "" {
		question += " [" + safetext.Line(suggested) + "]"
	}
	answer, ok, err := s.Ask(ctx, question+": ")
	switch {
	case err != nil:
		return "", err
	case !ok && answer == "":
		return "", s.declined()
	case answer == "":
		return suggested, nil
	}
	return answer, nil
}

// valueOf returns the value of a flag; not given, it asks for one, or takes the suggested one.
func (s *session) valueOf(ctx context.Context, flag, what, suggested string) (string, error) {
	if s.flags.IsSet(flag) {
		return s.flags.String(flag), nil
	}
	if s.flags.Bool("yes") {
		return suggested, nil
	}
	return s.askFor(ctx, what, suggested)
}

// askProject finds out everything about the project before anything is made.
func (s *session) askProject(ctx context.Context, d *draft) (err error) {
	for {
		d.project.Name, err = s.valueOf(ctx, "name", "Project name", templates.ProjectName(d.dir))
		if err != nil {
			return err
		}
		err = deployments.ValidateName("project", d.project.Name)
		if err == nil || s.flags.IsSet("name") || s.flags.Bool("yes") {
			break
		}
		s.note(err.Error())
	}
	if err != nil {
		return err
	}
	d.project.Description, err = s.valueOf(ctx, "description", "Project description", d.template.Default)
	if err != nil || s.flags.Bool("generate-only") {
		return err
	}
	if d.stack, err = s.valueOf(ctx, "stack", "Stack name", "dev"); err != nil {
		return err
	}
	return s.askConfig(ctx, d)
}

// askConfig collects the configuration: of --config, and what the template asks for beyond that.
func (s *session) askConfig(ctx context.Context, d *draft) error {
	given, err := s.givenConfig(d)
	if err != nil {
		return err
	}
	for _, q := range d.template.Questions {
		if given[d.key(q.Key)] {
			continue
		}
		value, err := s.answer(ctx, q)
		if err != nil {
			return err
		}
		if value == "" {
			d.unset = append(d.unset, q)
			continue
		}
		d.config = append(d.config, setValue{key: q.Key, value: value, secret: q.Secret})
	}
	return nil
}

// givenConfig adds the values of --config, and returns which keys they have.
func (s *session) givenConfig(d *draft) (map[string]bool, error) {
	secret, given := map[string]bool{}, map[string]bool{}
	for _, q := range d.template.Questions {
		secret[d.key(q.Key)] = q.Secret
	}
	for _, pair := range s.flags.StringSlice("config") {
		name, value, err := configPair(pair)
		if err != nil {
			return nil, err
		}
		given[d.key(name)] = true
		d.config = append(d.config, setValue{key: name, value: value, secret: secret[d.key(name)]})
	}
	return given, nil
}

// key gives a key its namespace.
func (d *draft) key(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return d.project.Name + ":" + name
}

// answer asks a question of the template. A secret is not shown while it is typed, and its default is not shown at all.
func (s *session) answer(ctx context.Context, q templates.Question) (string, error) {
	if s.flags.Bool("yes") {
		return q.Default, nil
	}
	what := q.Key
	if q.Description != "" {
		what += " (" + q.Description + ")"
	}
	if !q.Secret {
		return s.askFor(ctx, what, q.Default)
	}
	value, err := s.hidden(safetext.Text(what) + ": ")
	if value == "" {
		value = q.Default
	}
	return value, err
}

// firstStack creates the project's first stack, with its configuration.
func (s *session) firstStack(ctx context.Context, d *draft) error {
	name, err := s.parseStack(d.stack)
	if err != nil {
		return err
	}
	if s.project == nil {
		return deployments.Errorf(deployments.CodeInvalid, "stack %s is not of project %s", name, d.project.Name)
	}
	if err := s.initStack(ctx, d.stack, name, s.flags.String("secrets-provider"), true); err != nil {
		return err
	}
	secrets, err := s.secrets(name)
	if err != nil {
		return err
	}
	for _, v := range d.config {
		if err := setConfig(ctx, secrets, v, false); err != nil {
			return err
		}
	}
	if len(d.config) == 0 {
		return nil
	}
	return secrets.Stack.Save()
}

// nextSteps prints what the user may do now.
func (s *session) nextSteps(d *draft) {
	if text := strings.TrimSpace(d.template.Quickstart); text != "" {
		s.say("\n%s", d.project.Fill(text))
	}
	s.say("\nNext:")
	if d.dir != s.dir {
		s.say("  cd %s", s.flags.String("dir"))
	}
	if s.flags.Bool("generate-only") {
		s.say("  deployctl stack init dev")
	}
	for _, q := range d.unset {
		command := "deployctl config set " + q.Key
		if q.Secret {
			command += " --secret"
		}
		if q.Description != "" {
			command += "   # " + q.Description
		}
		s.say("  %s", command)
	}
	s.say("  deployctl up")
}
