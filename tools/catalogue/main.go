// Command catalogue makes the catalogue of settle rules, and the page about it, from public facts and from the
// packages that describe providers:
//
//	go run ./tools/catalogue -facts DIR -sdk DIR [-metadata DIR]
//
// The directory of facts has aws, gcp and azure with the files externalname*.go of Upjet's providers, gcp-ids.tsv and
// cloudformation-ids.tsv; each line of its file versions says of which commit a part is: NAME COMMIT. That of packages
// has the archives of npm pack. There may be several major versions of a package: a rule applies to those that agree.
// That of metadata has the files bridge-metadata.json of bridged providers as PACKAGE.json, which say what Terraform's
// types are called; for packages without, the names alone must leave no doubt.
//
// What fails a check against the schema is left out and reported.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var m maker
	flag.StringVar(&m.facts, "facts", "", "directory of facts")
	flag.StringVar(&m.sdks, "sdk", "", "directory of archives of npm packages")
	flag.StringVar(&m.metadata, "metadata", "", "directory of bridge metadata")
	flag.StringVar(&m.out, "out", "catalogue", "directory of the catalogue")
	flag.StringVar(&m.page, "page", "docs/catalogue.md", "page about the catalogue")
	flag.Parse()
	if err := m.make(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// maker makes the catalogue.
type maker struct {
	facts, sdks, metadata, out, page string
	versions                         map[string]string // of the parts of the facts
	packages                         map[string][]*sdk // the newest first
}

func (m *maker) make() error {
	if err := m.read(); err != nil {
		return err
	}
	hand, err := readCurated()
	if err != nil {
		return err
	}
	var files []*file
	for _, c := range hand {
		f, err := m.file(&c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Package, err)
		}
		if err := f.write(m.out); err != nil {
			return err
		}
		files = append(files, f)
		fmt.Println(f.report())
	}
	if err := writeSchemas(filepath.Join(m.out, "testdata", "schemas.json.gz"), files); err != nil {
		return err
	}
	return writePage(m.page, files, hand)
}

// read reads the packages and the versions of facts.
func (m *maker) read() error {
	m.packages, m.versions = map[string][]*sdk{}, map[string]string{}
	text, err := os.ReadFile(filepath.Join(m.facts, "versions"))
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		name, version, _ := strings.Cut(line, " ")
		m.versions[name] = version
	}
	return readAll(m.sdks, "*.tgz", func(path string) error {
		s, err := readSDK(path)
		if err != nil {
			return err
		}
		all := append(m.packages[s.Package], s)
		slices.SortFunc(all, func(a, b *sdk) int { return b.major() - a.major() })
		m.packages[s.Package] = all
		return nil
	})
}

// file makes the catalogue of a package. Rules are those of its newest version, and apply to an older one if that
// gives the same rule.
func (m *maker) file(c *curated) (*file, error) {
	versions := m.packages[c.NPM]
	if len(versions) == 0 {
		return m.fileOf(c, nil, nil)
	}
	newest, err := m.fileOf(c, versions[0], nil)
	if err != nil {
		return nil, err
	}
	for _, s := range versions[1:] {
		if s.major() != newest.oldest-1 {
			return nil, fmt.Errorf("version %s is not the one before %d", s.Version, newest.oldest)
		}
		older, err := m.fileOf(c, s, newest)
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", s.Version, err)
		}
		newest.extend(older)
	}
	return newest, nil
}

// fileOf makes the catalogue of a version of a package. For an older one, the functions of the newest need not be
// there.
func (m *maker) fileOf(c *curated, s *sdk, newest *file) (*file, error) {
	f := &file{Package: c.Package, Terraform: c.Terraform, Versions: c.Versions, Values: c.Values, Functions: c.Functions,
		Rules: c.Rules, Types: map[string]entry{}, Left: map[string]string{}, sdk: s,
		bound: map[string]string{}, curated: map[string]bool{}}
	if f.sdk != nil {
		f.Checked, f.oldest = f.sdk.Version, f.sdk.major()
		if f.Versions == "" {
			f.Versions = f.sdk.versions(f.sdk.major())
		}
	}
	f.addSources(c, m.versions)
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	if err := f.bindKnown(c.Bind, filepath.Join(m.metadata, c.Package+".json")); err != nil {
		return nil, err
	}
	if f.sdk == nil { // nothing to check against
		for key, r := range rules {
			f.Types[key] = entry{Rules: r}
		}
		return f, nil
	}
	if f.Terraform != "" {
		f.bind(slices.Sorted(maps.Keys(rules)))
		f.bind(slices.Sorted(maps.Keys(c.Wrong)))
	}
	for key, why := range c.Wrong {
		token := f.bound[key]
		if f.Terraform == "" {
			token = c.Package + ":" + key
		}
		f.curated[key], f.Left[token] = true, why
	}
	for key, r := range rules {
		token := key
		if f.Terraform != "" {
			token = f.bound[key]
		}
		f.curated[key] = true
		f.add(key, token, entry{Rules: r})
	}
	if err := f.checkValues(); err != nil && newest == nil {
		return nil, err
	}
	switch {
	case c.Package == "aws-native":
		err = f.generateCloudControl(filepath.Join(m.facts, "cloudformation-ids.tsv"))
	case c.Package == "azure-native":
		f.generateAzure(m.packages["azure"][0])
	case c.Terraform != "":
		var known facts
		if known, err = m.terraform(c.Package); err == nil {
			f.generate(known)
		}
	case c.Placeholders:
		f.placeholders()
	}
	return f, err
}

// terraform reads what is known about the types of a bridged package.
func (m *maker) terraform(pkg string) (facts, error) {
	known := facts{}
	err := readAll(filepath.Join(m.facts, pkg), "*.go", func(path string) error {
		name := "upjet"
		if strings.Contains(path, "nottested") {
			name = "upjet-untested"
		}
		return known.readExternalNames(path, name)
	})
	if err == nil && pkg == "gcp" {
		err = known.readGCP(filepath.Join(m.facts, "gcp-ids.tsv"), "magic-modules")
	}
	return known, err
}

// addSources names the sources of a package's rules, with their versions.
func (f *file) addSources(c *curated, versions map[string]string) {
	for _, s := range c.Sources {
		s.Version = versions[c.Package+"/"+s.Name]
		if s.Version == "" && f.sdk != nil {
			s.Version = f.sdk.Version
		}
		f.Sources = append(f.Sources, s)
	}
	if c.Source != "" {
		s := source{Name: "hand", Of: "written for deployctl: " + c.Source, Licence: "Apache-2.0"}
		if f.sdk != nil {
			s.Version = f.sdk.Version
		}
		f.Sources = append(f.Sources, s)
	}
	for i := range f.Rules {
		f.Rules[i].Confidence, f.Rules[i].Source = "high", "hand"
	}
}

// bindKnown binds the tokens that are known for certain: those written by hand, and those of the bridge's metadata.
func (f *file) bindKnown(hand map[string]string, path string) error {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		var metadata struct {
			Aliasing struct {
				Resources map[string]struct {
					Current string `json:"current"`
				} `json:"resources"`
			} `json:"auto-aliasing"`
		}
		if err := json.Unmarshal(data, &metadata); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for tf, r := range metadata.Aliasing.Resources {
			f.bound[tf] = r.Current
		}
	}
	maps.Copy(f.bound, hand)
	return nil
}

// report says what a package has, and why types were left out.
func (f *file) report() string {
	high, reasons := 0, map[string]int{}
	for _, e := range f.Types {
		if e.Rules[0].Confidence == "high" {
			high++
		}
	}
	for _, why := range f.Left {
		reasons[why]++
	}
	text := fmt.Sprintf("%s: %d types (%d high), %d rules for all types", f.Package, len(f.Types), high, len(f.Rules))
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		text += fmt.Sprintf("\n  %4d left out: %s", reasons[why], why)
	}
	return text
}
