package e2e

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// gates is a program of an extension of the package fake, whose type is Gate. Two resources belong to it.
func gates(version, size string) string {
	return steps("{package: gates, plugin: fake, extension: {name: gates, version: "+version+", value: Gate}}",
		"{register: a, type: fake:index:Gate, properties: {name: a, size: "+size+"}, options: {package: gates}}",
		"{register: b, type: fake:index:Gate, properties: {name: b, links: ['${a.arn}']}, options: {package: gates}}",
		"{register: plain, type: fake:index:Named, properties: {name: plain}, options: {dependsOn: [b]}}")
}

// extensionOf returns the extension that a resource names in the state.
func (s *scene) extensionOf(t *testing.T, name string) (apitype.ExtensionRef, apitype.Extension) {
	t.Helper()
	ref := s.inState(t, name).ExtensionRef
	return ref, s.exported(t).Extensions[ref]
}

// TestResourcesOfAnExtensionLiveAsOthersDo plays updates with a provider that refuses to be extended twice in one
// process, and that without the extension does not know the type.
func TestResourcesOfAnExtensionLiveAsOthersDo(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, gates("1.0.0", "1"))
	ref, extension := s.extensionOf(t, "a")
	if len(ref) != 64 || extension.Name != "gates" || extension.Version != "1.0.0" || string(extension.Value) != "Gate" {
		t.Errorf("the state names the extension %s: %+v", ref, extension)
	}
	if plain, _ := s.extensionOf(t, "plain"); plain != "" {
		t.Errorf("a resource of the package itself names the extension %s", plain)
	}
	s.update(t, "up").expect(t, map[string]int{"same": 4})
	s.write(t, "scenario.yaml", gates("1.0.1", "2"))
	s.update(t, "preview").expect(t, map[string]int{"update": 1, "same": 3})
	s.update(t, "up").expect(t, map[string]int{"update": 1, "same": 3})
	if next, extension := s.extensionOf(t, "b"); next == ref || extension.Version != "1.0.1" {
		t.Errorf("an unchanged resource names the extension %s: %+v", next, extension)
	}
	if all := s.exported(t).Extensions; len(all) != 1 {
		t.Errorf("the state has the extensions %v", all)
	}

	// No program says what the extension is: the state does.
	s.update(t, "refresh").expect(t, map[string]int{"same": 4})
	s.update(t, "destroy").expect(t, map[string]int{"delete": 4})
	s.does(t, "update a", "delete plain", "delete b", "delete a")
}

// TestAnExtensionIsGivenAgainWhoeverIsKilled kills the provider and the service while the cloud holds the create of a
// resource of an extension.
func TestAnExtensionIsGivenAgainWhoeverIsKilled(t *testing.T) {
	soaktest.Only(t)
	for _, victim := range []string{"the service", "the provider"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			s := &scene{stage: newStage(t, homeFor(t, victim))}
			s.must(t, "config", "set", "deployctl:settle", strings.Replace(findable, "{",
				`{"fake:index:Gate": {"read": "property:name"}, `, 1))
			s.write(t, "scenario.yaml", gates("1.0.0", "1"))
			gate, err := s.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Create, Object: "a",
				At: fakecloud.After, Times: 1})
			must(t, err)
			up := s.start(t, "up", "--yes", "--skip-preview")
			must(t, gate.Wait(waiting(t)))
			killed[victim](t, s.stage, up)
			must(t, gate.WaitEmpty(waiting(t)))
			must(t, gate.Open(t.Context()))
			s.attached(t).mustEnd(t, 0)
			up.mustEnd(t, 0)
			s.update(t, "up").expect(t, map[string]int{"same": 4})
			if _, extension := s.extensionOf(t, "b"); extension.Name != "gates" {
				t.Errorf("the state has the extension %+v", extension)
			}
		})
	}
}

func TestAnExtensionThatTheProviderRefusesFailsItsResource(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := &scene{stage: newStage(t, sharedHome(t))}
	s.write(t, "scenario.yaml", strings.Replace(gates("1.0.0", "1"), "value: Gate", "value: ''", 1))
	s.fails(t, 1, []string{"extending the provider by package gates 1.0.0", "an extension needs a value"},
		"up", "--yes", "--skip-preview")
}
