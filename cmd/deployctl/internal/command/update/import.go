package update

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/terminal/importfile"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

// ImportCommand returns deployctl import.
func ImportCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "take existing resources into the stack, and print their declarations",
		ArgsUsage: "[TYPE] [NAME] [ID]",
		Description: "Reads each resource through its provider and adds it to the stack's state; nothing real changes. " +
			"The printed text declares them in the language of the project, if its language host can write programs, " +
			"or in PCL. Copy it into the program.\n" + changeExits,
		Flags: console.OnStack(console.JSONFlag, console.QuietFlag, diffFlag, parallelFlag, messageFlag, configFlag,
			configPathFlag, console.ConfigFileFlag, console.YesFlag, onBusyFlag, console.ContinueOnErrorFlag, previewOnlyFlag,
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
		Action: console.Action(s, runImport),
	}
}

func runImport(ctx context.Context, s *console.Session) error {
	if err := s.NeedProject(); err != nil {
		return err
	}
	file, err := importFile(s)
	if err != nil {
		return err
	}
	return changeStack(ctx, s, engine.KindImport, func(r *deployments.UpdateRequest) error {
		imports, variables, err := file.Resolve(r.Stack, s.Flags.Bool("protect"))
		if err != nil {
			return err
		}
		r.Imports = imports
		if s.Flags.Bool("generate-code") {
			r.Variables = variables
		}
		return nil
	})
}

// importFile returns what the command is to import: from --file, or from the arguments and flags.
func importFile(s *console.Session) (importfile.File, error) {
	path, args := s.Flags.String("file"), s.Flags.Args()
	switch {
	case path == "" && args.Len() != 3:
		return importfile.File{}, deployments.Errorf(deployments.CodeInvalid, "deployctl import takes TYPE, NAME and ID, "+
			"or --file FILE")
	case path == "":
		return importOfFlags(s, args.Get(0), args.Get(1), args.Get(2))
	case args.Len() > 0 || s.Flags.IsSet("parent") || s.Flags.IsSet("provider") || s.Flags.IsSet("properties"):
		return importfile.File{}, deployments.Errorf(deployments.CodeInvalid, "--file lists the resources with their "+
			"parents, providers and properties; leave out the arguments, --parent, --provider and --properties")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.WorkDir, path)
	}
	text, err := os.ReadFile(path) //nolint:gosec // named by the user
	if err != nil {
		return importfile.File{}, deployments.Errorf(deployments.CodeInvalid, "--file: %w", err)
	}
	file, err := importfile.Parse(text)
	if err != nil {
		return file, deployments.Errorf(deployments.CodeInvalid, "%s: %w", s.Flags.String("file"), err)
	}
	return file, nil
}

// importOfFlags returns a file that lists one resource.
func importOfFlags(s *console.Session, typ, name, id string) (importfile.File, error) {
	file := importfile.File{NameTable: map[string]urn.URN{}}
	entry := importfile.Resource{Type: typ, Name: name, ID: id}
	for _, list := range s.Flags.StringSlice("properties") {
		entry.Properties = append(entry.Properties, strings.Split(list, ",")...)
	}
	for _, ref := range []struct {
		flag string
		to   *string
	}{{"parent", &entry.Parent}, {"provider", &entry.Provider}} {
		text := s.Flags.String(ref.flag)
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

// undeclared is what becomes of imported resources that the program does not declare.
const undeclared = "an up whose program does not declare them would delete them, or fail because they are protected."

// declared prints the declarations that an import has written, or writes them to --out.
func declared(s *console.Session, state *projection.State) error {
	text := state.Program
	if text == "" {
		return nil
	}
	if path := s.Flags.String("out"); path != "" {
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.WorkDir, path)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil { //nolint:gosec // program text, for the user
			return deployments.Errorf(deployments.CodeInvalid, "the resources are imported, but their declarations could "+
				"not be written: %w; deployctl attach prints them", err)
		}
		s.Note("Wrote the declarations of the imported resources to " + s.Flags.String("out") + ". If the " +
			"program does not declare these yet, copy them into it: " + undeclared)
		return nil
	}
	if s.Flags.Bool("json") {
		return nil // the events have it
	}
	s.Note("\nIf the program does not declare these resources yet, copy this into it: " + undeclared + "\n")
	s.Say("%s", strings.TrimRight(text, "\n"))
	return nil
}

// writeImportFile writes what a preview would create as a file for deployctl import.
func writeImportFile(s *console.Session, state *projection.State) error {
	path := s.Flags.String("import-file")
	if path == "" {
		return nil
	}
	file, notes := importfile.OfPreview(state.Rows)
	text, err := file.Encode()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.WorkDir, path)
	}
	if err := os.WriteFile(path, text, 0o666); err != nil { //nolint:gosec // for the user
		return deployments.Errorf(deployments.CodeInvalid, "--import-file: %w", err)
	}
	s.Note(fmt.Sprintf("Wrote %s to %s. Replace each %s by the id of an existing resource, remove what is to "+
		"be created, and run deployctl import --file %s.", console.Counted(len(file.Resources), "resource", "resources"),
		s.Flags.String("import-file"), importfile.Placeholder, s.Flags.String("import-file")))
	for _, note := range notes {
		s.Note("  " + note)
	}
	return nil
}
