package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// puts makes things in the cloud as somebody else would, each with a size and a zone.
func (s *stage) puts(t *testing.T, kind string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must(t, s.cloud.Put(t.Context(), fakecloud.Object{Kind: kind, ID: id, Name: id, Properties: map[string]any{
			"size": 2, "zone": "b", "secretText": "sesame " + id, "settings": map[string]any{"a b": []any{"${x}", 1, true}},
		}}))
	}
}

// read returns the text of a file of the project.
func (p *project) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	must(t, err)
	return string(text)
}

// TestAnImportedResourceIsDeclaredByThePrintedProgram imports into a YAML project, whose language host writes programs.
func TestAnImportedResourceIsDeclaredByThePrintedProgram(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := &scene{stage: newStage(t, sharedHome(t))}
	project := "name: " + projectName(t) + "\nruntime: yaml\n"
	s.write(t, "Pulumi.yaml", project)
	s.puts(t, "named", "shop", "cart")
	s.seen = s.effects(t)

	s.must(t, "import", "--preview-only", "fake:index:Named", "shop", "shop")
	s.fails(t, 1, []string{"resource 'shpo' does not exist"}, "import", "fake:index:Named", "shop", "shpo", "--yes")
	if state := s.exported(t); slices.ContainsFunc(sortedState(state), func(r string) bool {
		return strings.Contains(r, "Named")
	}) {
		t.Errorf("the state has %v", state.Resources)
	}
	said := s.must(t, "import", "fake:index:Named", "shop", "shop", "--yes", "--out", "declared.yaml")
	if strings.Contains(said, "sesame") {
		t.Errorf("a secret is shown:\n%s", said)
	}
	shop := s.inState(t, "shop")
	if !shop.Protect || shop.ID != "shop" || shop.ImportID != "" || shop.Inputs["size"] != 2.0 {
		t.Errorf("the state has %+v", shop)
	}
	declared := s.read(t, "declared.yaml")
	if !strings.Contains(declared, "type: fake:Named") || strings.Contains(declared, "sesame") {
		t.Errorf("the program is\n%s", declared)
	}
	s.write(t, "Pulumi.yaml", project+strings.ReplaceAll(declared, "[secret]", "sesame shop"))
	s.update(t, "up").expect(t, map[string]int{"same": 2})

	// The same import again changes nothing; another resource cannot have the name.
	s.update(t, "import", "fake:index:Named", "shop", "shop").expect(t, map[string]int{"same": 2})
	s.fails(t, 1, []string{"in the stack already, with the id shop"}, "import", "fake:index:Named", "shop", "cart",
		"--yes")
	s.fails(t, 2, []string{"TYPE, NAME and ID"}, "import", "fake:index:Named", "shop")
	s.does(t)
}

// TestImportedResourcesReferToEachOther imports two resources, one of which has the id of the other as a property.
func TestImportedResourcesReferToEachOther(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := &scene{stage: newStage(t, sharedHome(t))}
	project := "name: " + projectName(t) + "\nruntime: yaml\n"
	s.write(t, "Pulumi.yaml", project)
	for id, of := range map[string]string{"shop": "nobody", "cart": "shop"} {
		must(t, s.cloud.Put(t.Context(), fakecloud.Object{Kind: "named", ID: id, Name: id,
			Properties: map[string]any{"size": 2, "zone": "b", "settings": map[string]any{"of": of}}}))
	}
	s.seen = s.effects(t)
	s.write(t, "import.json", `{"resources": [{"type": "fake:index:Named", "name": "wagon", "id": "cart"},
		{"type": "fake:index:Named", "name": "market", "id": "shop"}]}`)
	s.must(t, "import", "--file", "import.json", "--yes", "--out", "declared.yaml")
	declared := s.read(t, "declared.yaml")
	if !strings.Contains(declared, "of: ${market.id}") || !strings.Contains(declared, "of: nobody") {
		t.Errorf("the program is\n%s", declared)
	}
	s.write(t, "Pulumi.yaml", project+declared)
	s.update(t, "up").expect(t, map[string]int{"same": 3})
	if wagon := s.inState(t, "wagon"); len(wagon.PropertyDependencies["settings"]) != 1 {
		t.Errorf("the state has %+v", wagon)
	}
	s.does(t)
}

// TestAFileIsImportedWithItsParentsAndProviders writes the file with a preview, fills it in, and imports it: the
// program then has nothing to do.
func TestAFileIsImportedWithItsParentsAndProviders(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: owner, type: app:index:Owner, component: true}",
		"{register: stays, type: fake:index:Named, properties: {name: stays}, options: {parent: owner}}"))
	s.write(t, "scenario.yaml", steps("{register: owner, type: app:index:Owner, component: true}",
		"{register: stays, type: fake:index:Named, properties: {name: stays}, options: {parent: owner}}",
		"{register: group, type: app:index:Group, component: true, options: {parent: owner}}",
		"{register: elsewhere, type: 'pulumi:providers:fake', properties: {account: other}}",
		"{register: shop, type: fake:index:Named, properties: {name: shop, size: 2, zone: b, secretText: sesame shop,"+
			" settings: {'a b': ['$${x}', 1, true]}}, options: {parent: group, provider: elsewhere}}",
		"{register: cart, type: fake:index:Named, properties: {name: cart, size: 2, zone: b, secretText: sesame cart, "+
			"settings: {'a b': ['$${x}', 1, true]}}, options: {parent: group}}"))
	s.puts(t, "named", "shop", "cart")
	s.seen = s.effects(t)

	s.update(t, "preview", "--import-file", "import.json")
	s.fails(t, 2, []string{"still has <PLACEHOLDER> as its id"}, "import", "--file", "import.json", "--yes")
	text := s.read(t, "import.json")
	var file struct {
		NameTable map[string]string
		Resources []map[string]any
	}
	must(t, json.Unmarshal([]byte(text), &file))
	for _, r := range file.Resources {
		if r["id"] != nil {
			r["id"] = r["name"]
		}
	}
	filled, err := json.Marshal(file)
	must(t, err)
	s.write(t, "import.json", string(filled))
	listed := fmt.Sprint(file)
	for _, want := range []string{"map[owner:urn:pulumi:dev::", "id:shop name:shop parent:group provider:elsewhere type:",
		"id:cart name:cart parent:group type:fake:index:Named version:0.1.0",
		"inputs:map[account:other] name:elsewhere type:pulumi:providers:fake version:0.1.0"} {
		if len(file.Resources) != 4 || !strings.Contains(listed, want) {
			t.Fatalf("the file does not list %q but\n%s", want, text)
		}
	}
	said := s.run(t, "import", "--file", "import.json", "--yes", "--protect=false")
	said.mustEnd(t, 0)
	for _, want := range []string{"the language host of scenario writes no programs",
		`resource "shop" "fake:index:Named"`, "parent = group", "provider = elsewhere", `secret("[secret]")`} {
		if !strings.Contains(said.said(), want) {
			t.Errorf("it does not say %q but\n%s", want, said.said())
		}
	}
	s.update(t, "up").expect(t, map[string]int{"same": 7})
	s.does(t)

	var history []struct {
		Kind    string
		Changes map[string]int
	}
	must(t, json.Unmarshal([]byte(s.must(t, "stack", "history", "--json")), &history))
	if history[1].Kind != "import" || history[1].Changes["import"] != 3 {
		t.Errorf("the history is %v", history)
	}
}

// TestAnImportWhoseWorkerIsKilledGoesOn kills the service while one resource is read and others have been imported.
func TestAnImportWhoseWorkerIsKilledGoesOn(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, newHome(t))
	s.write(t, "scenario.yaml", "packages: [{name: fake, version: 0.1.0}]\nsteps: []\n")
	ids := []string{"a", "b", "c", "d"}
	s.puts(t, "named", ids...)
	before := s.effects(t)
	var list []string
	for _, id := range ids {
		list = append(list, fmt.Sprintf(`{"type": "fake:index:Named", "name": %q, "id": %q}`, id, id))
	}
	s.write(t, "import.json", `{"resources": [`+strings.Join(list, ",")+`]}`)
	gate, err := s.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Read, Object: "c",
		At: fakecloud.Before, Times: 1})
	must(t, err)

	up := s.start(t, "import", "--file", "import.json", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	up.says(t, "a imported")
	s.killService(t)
	must(t, gate.WaitEmpty(waiting(t)))
	must(t, gate.Open(t.Context()))
	s.attached(t).mustEnd(t, 0)
	up.mustEnd(t, 0)

	var imported []string
	for _, r := range s.exported(t).Resources {
		if strings.HasPrefix(string(r.Type), "fake:") {
			imported = append(imported, string(r.ID))
		}
	}
	if slices.Sort(imported); !slices.Equal(imported, ids) {
		t.Errorf("the state has %v", imported)
	}
	if n := s.effects(t); n != before {
		t.Errorf("an import has had %d effects", n-before)
	}
}
