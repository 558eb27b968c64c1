package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/terminal/importfile"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

func importCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "take existing resources into the stack, and print their declarations",
		ArgsUsage: "[TYPE] [NAME] [ID]",
		Description: "Reads each resource through its provider and adds it to the stack's state; nothing real changes. " +
			"The printed text declares them in the language of the project, if its language host can write programs, " +
			"or in PCL. Copy it into the program.\n" + changeExits,
		Flags: onStack(jsonFlag, quietFlag, diffFlag, parallelFlag, messageFlag, configFlag, configPathFlag, configFileFlag,
			yesFlag,
			onBusyFlag, continueOnErrorFlag, previewOnlyFlag,
			&cli.BoolFlag{Name: "skip-preview", Usage: "import without a preview"},
			&cli.StringFlag{Name: "file", Usage: "import what `FILE` lists, in the format of `pulumi import`; " +
				"deployctl preview --import-file writes one"},
			&cli.StringFlag{Name: "parent", Usage: "`NAME=URN` of the parent: its variable in the program, and its URN"},
			&cli.StringFlag{Name: "provider", Usage: "`NAME=URN` of an explicit provider: its variable in the program, " +
				"and its URN"},
			&cli.StringSliceFlag{Name: "properties", Usage: "keep only these inputs, `NAME,...`; may be repeated"},
			&cli.BoolFlag{Name: "protect", Usage: "protect the resources from deletion; --protect=false does not",
				Value: true},
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "write the declarations to `FILE`"},
			&cli.BoolFlag{Name: "generate-code", Usage: "print the declarations; --generate-code=false does not",
				Value: true},
		),
		Action: action(s, runImport),
	}
}

func runImport(ctx context.Context, s *session) error {
	if err := s.needProject(); err != nil {
		return err
	}
	file, err := s.importFile()
	if err != nil {
		return err
	}
	return s.change(ctx, engine.KindImport, func(r *deployments.UpdateRequest) error {
		imports, variables, err := file.Resolve(r.Stack, s.flags.Bool("protect"))
		if err != nil {
			return err
		}
		r.Imports = imports
		if s.flags.Bool("generate-code") {
			r.Variables = variables
		}
		return nil
	})
}

// importFile returns what the command is to import: from --file, or from the arguments and flags.
func (s *session) importFile() (importfile.File, error) {
	path, args := s.flags.String("file"), s.flags.Args()
	switch {
	case path == "" && args.Len() != 3:
		return importfile.File{}, deployments.Errorf(deployments.CodeInvalid, "deployctl import takes TYPE, NAME and ID, "+
			"or --file FILE")
	case path == "":
		return s.importOfFlags(args.Get(0), args.Get(1), args.Get(2))
	case args.Len() > 0 || s.flags.IsSet("parent") || s.flags.IsSet("provider") || s.flags.IsSet("properties"):
		return importfile.File{}, deployments.Errorf(deployments.CodeInvalid, "--file lists the resources with their "+
			"parents, providers and properties; leave out the arguments, --parent, --provider and --properties")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	text, err := os.ReadFile(path) //nolint:gosec // named by the user
	if err != nil {
		return importfile.File{}, deployments.Errorf(deployments.CodeInvalid, "--file: %w", err)
	}
	file, err := importfile.Parse(text)
	if err != nil {
		return file, deployments.Errorf(deployments.CodeInvalid, "%s: %w", s.flags.String("file"), err)
	}
	return file, nil
}

// importOfFlags returns a file that lists one resource.
func (s *session) importOfFlags(typ, name, id string) (importfile.File, error) {
	file := importfile.File{NameTable: map[string]urn.URN{}}
	entry := importfile.Resource{Type: typ, Name: name, ID: id}
	for _, list := range s.flags.StringSlice("properties") {
		entry.Properties = append(entry.Properties, strings.Split(list, ",")...)
	}
	for _, ref := range []struct {
		flag string
		to   *string
	}{{"parent", &entry.Parent}, {"provider", &entry.Provider}} {
		text := s.flags.String(ref.flag)
		if text == "" {
			continue
		}
		variable, u, named := strings.Cut(text, "=")
		if !named || strings.HasPrefix(text, "urn:") {
			variable, u = ref.flag, text
		}
		if !urn.URN(u).IsValid() || variable == "" {
			return file, deployments.Errorf(deployments.CodeInvalid, "--%s takes NAME=URN, not %q; deployctl state ls "+
				"--urns prints the URNs", ref.flag, text)
		}
		if other, taken := file.NameTable[variable]; taken && other != urn.URN(u) {
			return file, deployments.Errorf(deployments.CodeInvalid, "--parent and --provider have the same name, %q; "+
				"give each its own", variable)
		}
		file.NameTable[variable], *ref.to = urn.URN(u), variable
	}
	file.Resources = []importfile.Resource{entry}
	return file, nil
}

// declared prints the declarations that an import has written, or writes them to --out.
func (s *session) declared(state *projection.State) error {
	text := state.Program
	if text == "" {
		return nil
	}
	if path := s.flags.String("out"); path != "" {
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.dir, path)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil { //nolint:gosec // program text, for the user
			return deployments.Errorf(deployments.CodeInvalid, "the resources are imported, but their declarations could "+
				"not be written: %w; deployctl attach prints them", err)
		}
		s.note("Wrote the declarations of the imported resources to " + s.flags.String("out") + ". Copy them into the " +
			"program: an up whose program does not declare them would delete them.")
		return nil
	}
	if s.flags.Bool("json") {
		return nil // the events have it
	}
	s.note("\nCopy these declarations into the program: an up whose program does not declare them would delete the " +
		"resources, or fail because they are protected.\n")
	s.say("%s", strings.TrimRight(text, "\n"))
	return nil
}

// writeImportFile writes what a preview would create as a file for deployctl import.
func (s *session) writeImportFile(state *projection.State) error {
	path := s.flags.String("import-file")
	if path == "" {
		return nil
	}
	file, notes := importfile.OfPreview(state.Rows)
	text, err := file.Encode()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	if err := os.WriteFile(path, text, 0o666); err != nil { //nolint:gosec // for the user
		return deployments.Errorf(deployments.CodeInvalid, "--import-file: %w", err)
	}
	s.note(fmt.Sprintf("Wrote %s to %s. Replace each %s by the id of an existing resource, remove what is to "+
		"be created, and run deployctl import --file %s.", counted(len(file.Resources), "resource", "resources"),
		s.flags.String("import-file"), importfile.Placeholder, s.flags.String("import-file")))
	for _, note := range notes {
		s.note("  " + note)
	}
	return nil
}
