package scenario_test

import (
	"slices"
	"strings"
	"testing"
)

func TestTheStackComesFirstAndItsOutputsLast(t *testing.T) {
	m := play(t, `
steps:
  - {register: web, type: "fake:index:Named", properties: {size: 1}}
outputs: {arn: "${web.arn}"}
`)
	if m.error != "" || m.order() != "proj-dev web" || m.outputs["proj-dev"]["arn"].StringValue() != "arn-of-web" ||
		!m.shutdown {
		t.Errorf("%s: %s, outputs %v, shutdown %v", m.error, m.order(), m.outputs, m.shutdown)
	}
	if web := m.request("web"); web.Parent != m.urn("proj-dev") || !web.Custom || !web.AcceptSecrets {
		t.Errorf("web: %v", web)
	}
}

func TestReferencesCarryDependenciesSecretsAndTypes(t *testing.T) {
	m := play(t, `
steps:
  - {register: web, type: "fake:index:Named", properties: {size: 3, hidden: !secret hush}}
  - register: dep
    type: fake:index:Named
    properties:
      size: ${web.size}
      text: "size ${web.size} of ${stack} $${x}"
      secret: ${web.hidden}
      nested: [{arn: "${web.arn}"}]
      own: {a: [1, true, null, x]}
      ref: !ref web
    options: {dependsOn: [web]}
`)
	props, dep := m.props("dep"), m.request("dep")
	if props["size"].NumberValue() != 3 || props["text"].StringValue() != "size 3 of dev ${x}" ||
		!props["secret"].IsSecret() {
		t.Errorf("%s: properties %v", m.error, props)
	}
	for key, want := range map[string]int{"size": 1, "text": 1, "secret": 1, "nested": 1, "own": 0, "ref": 1} {
		if got := dep.PropertyDependencies[key].GetUrns(); len(got) != want {
			t.Errorf("%s depends on %v", key, got)
		}
	}
	if !slices.Equal(dep.Dependencies, []string{m.urn("web")}) {
		t.Errorf("dependencies: %v", dep.Dependencies)
	}
}

func TestWhatDoesNotDependOnOneAnotherIsRegisteredAtOnce(t *testing.T) {
	// The monitor answers none of the fifty before all have come.
	m := play(t, `
steps:
  - repeat: 50
    steps: [{register: "r-{{i}}", type: "fake:index:Auto", properties: {n: "{{i}}"}}]
`, together(50))
	if m.error != "" || m.props("r-7")["n"].NumberValue() != 7 {
		t.Error(m.error)
	}
}

func TestAChainIsRegisteredOneAfterTheOther(t *testing.T) {
	m := play(t, `
steps:
  - {register: c-0, type: "fake:index:Auto"}
  - repeat: 3
    from: 1
    steps: [{register: "c-{{i}}", type: "fake:index:Auto", properties: {link: "${c-{{i-1}}.arn}"}}]
`)
	if got := m.order(); got != "proj-dev c-0 c-1 c-2 c-3" {
		t.Errorf("%s: %s", m.error, got)
	}
}

func TestWhatIsNotKnownInAPreviewStaysUnknown(t *testing.T) {
	m := play(t, `
steps:
  - {register: web, type: "fake:index:Named", properties: {size: 3}}
  - {register: dep, type: "fake:index:Named", properties: {a: "${web.later}", b: "x${web.id}", size: "${web.size}"}}
  - {invoke: found, token: "fake:index:lookup", args: {name: "${web.later}"}}
  - {register: last, type: "fake:index:Named", properties: {c: "${found.arn}"}}
  - {assert: "${web.later} == x"}
  - {print: "${web.later}"}
`, preview)
	props := m.props("dep")
	if !props["a"].IsComputed() || !props["b"].IsComputed() || props["size"].NumberValue() != 3 || len(m.invokes) != 0 {
		t.Errorf("%s: %v, invokes %v", m.error, props, m.invokes)
	}
	if !m.props("last")["c"].IsComputed() || !slices.Equal(m.request("last").PropertyDependencies["c"].GetUrns(),
		[]string{m.urn("web")}) {
		t.Errorf("last: %v", m.request("last"))
	}
}

func TestOptionsReachTheMonitor(t *testing.T) {
	m := play(t, `
steps:
  - {register: prov, type: "pulumi:providers:fake"}
  - {register: comp, type: "my:mod:Comp", component: true, options: {providers: {fake: prov}}}
  - register: web
    type: fake:index:Named
    options:
      parent: comp
      protect: false
      ignoreChanges: [size]
      replaceOnChanges: [zone]
      deleteBeforeReplace: false
      retainOnDelete: true
      deletedWith: comp
      replaceWith: [prov]
      replacementTrigger: !secret now
      aliases: ["urn:pulumi:dev::proj::fake:index:Named::was", {name: older, noParent: true}]
      import: some-${stack}
      customTimeouts: {create: 5m}
      additionalSecretOutputs: [arn]
      version: 1.2.3
      pluginDownloadURL: http://localhost
  - {register: group, type: "fake:index:Group", remote: true, options: {parent: comp}}
`)
	web := m.request("web")
	for option, reached := range map[string]bool{
		"parent":              web.Parent == m.urn("comp"),
		"provider":            web.Provider == m.urn("prov")+"::id-of-prov",
		"protect":             web.Protect != nil && !*web.Protect,
		"ignoreChanges":       len(web.IgnoreChanges) == 1,
		"replaceOnChanges":    len(web.ReplaceOnChanges) == 1,
		"deleteBeforeReplace": web.DeleteBeforeReplaceDefined && !web.DeleteBeforeReplace,
		"retainOnDelete":      web.RetainOnDelete != nil && *web.RetainOnDelete,
		"deletedWith":         web.DeletedWith == m.urn("comp"),
		"replaceWith":         slices.Equal(web.ReplaceWith, []string{m.urn("prov")}),
		"replacementTrigger":  web.ReplacementTrigger != nil,
		"aliases": len(web.Aliases) == 2 && web.Aliases[0].GetUrn() != "" &&
			web.Aliases[1].GetSpec().GetNoParent(),
		"import":                  web.ImportId == "some-dev",
		"customTimeouts":          web.CustomTimeouts.GetCreate() == "5m",
		"additionalSecretOutputs": len(web.AdditionalSecretOutputs) == 1,
		"version":                 web.Version == "1.2.3" && web.PluginDownloadURL == "http://localhost",
		"providers of a remote":   m.request("group").Providers["fake"] == web.Provider && m.request("group").Remote,
	} {
		if !reached {
			t.Errorf("%s did not reach the monitor: %s %v", option, m.error, web)
		}
	}
}

func TestConfigurationConditionsAndOnceChooseSteps(t *testing.T) {
	script := `
steps:
  - {register: a, type: "fake:index:Named", when: "${config.flag} == x"}
  - {register: b, type: "fake:index:Named", when: "${config.flag} != x"}
  - {register: c, type: "fake:index:Named", when: "${config.none}"}
  - {register: d, type: "fake:index:Named",
     properties: {n: "${config.n}", s: !string "${config.n}", p: "${config.password}"}}
  - {register: e, type: "fake:index:Named", once: marker, options: {dependsOn: [d]}}
`
	dir := t.TempDir()
	first, second := play(t, script, in(dir)), play(t, script, in(dir))
	if first.sorted() != "a d e proj-dev" || second.sorted() != "a d proj-dev" {
		t.Errorf("first %s (%s), second %s (%s)", first.sorted(), first.error, second.sorted(), second.error)
	}
	if d := first.props("d"); !d["n"].IsNumber() || !d["s"].IsString() || !d["p"].IsSecret() {
		t.Errorf("d: %v", d)
	}
}

func TestReadInvokeAndCallGiveValues(t *testing.T) {
	m := play(t, `
steps:
  - {read: old, type: "fake:index:Named", id: "an-id"}
  - {invoke: found, token: "fake:index:lookup", args: {name: "${old.id}"}}
  - {call: called, token: "fake:index:Group/method", self: old, args: {x: "${found.name}"}}
  - {outputs: old, values: {y: "${called.x}"}}
  - {assert: "${called.x} == an-id"}
`)
	if m.error != "" || m.outputs["old"]["y"].StringValue() != "an-id" {
		t.Errorf("%s: %v", m.error, m.outputs)
	}
}

func TestAProgramGoesWrongInEveryWay(t *testing.T) {
	for _, c := range []struct{ name, step, error string }{
		{"it throws", `{throw: "ouch ${stack}"}`, "the program threw: ouch dev"},
		{"it exits", `{exit: 7}`, "the program exited with code 7"},
		{"it exits with success", `{exit: 0}`, ""},
		{"it reports its failure", `{fail: ouch}`, "bail"},
		{"an assertion fails", `{assert: "${stack} == prod"}`, "assertion failed: ${stack} == prod (dev == prod)"},
		{"a resource is refused", `{register: bad, type: "fake:index:Bad"}`,
			"bad: rpc error: code = Unknown desc = no such type"},
		{"the monitor goes away", `{register: bad, type: "fake:index:Gone"}`, "bail"},
		{"a name is unknown", `{assert: "${nobody.x}"}`, "there is no earlier step named nobody"},
		{"a name is taken", `{register: ok, type: "fake:index:Named"}`, "there are two steps named ok"},
		{"a name is taken that others refer to", `{repeat: 2, steps: [{register: ok, type: "x:y:z"}, {outputs: ok}]}`,
			"there are two steps named ok"},
		{"a key is misspelt", `{register: x, typ: y}`, "field typ not found"},
		{"a step is of no kind", `{registr: x}`, "a step must have one of these keys"},
		{"an error is expected and comes", `{register: bad, type: "fake:index:Bad", expectError: no such type}`, ""},
		{"an error is expected and does not come", `{register: x, type: "fake:index:Named", expectError: no such type}`,
			"expected an error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := play(t, "steps:\n  - {register: ok, type: \"fake:index:Named\"}\n  - "+c.step+"\n")
			if c.error == "" && m.error != "" || !strings.Contains(m.error, c.error) {
				t.Errorf("ended with %q", m.error)
			}
		})
	}
}

func TestASkippedResourceSkipsWhatDependsOnIt(t *testing.T) {
	m := play(t, `
steps:
  - {register: bad, type: "fake:index:Skipped"}
  - {register: dep, type: "fake:index:Named", properties: {a: "${bad.arn}"}}
  - {register: other, type: "fake:index:Named"}
`)
	if m.error != "" || m.sorted() != "bad other proj-dev" {
		t.Errorf("%s: %s", m.error, m.sorted())
	}
}

func TestWaitsTouchesAndParallelStepsMeet(t *testing.T) {
	m := play(t, `
steps:
  - parallel:
      - {wait: {file: there}}
      - {touch: there}
  - {await: []}
  - {log: done, severity: warning}
`)
	if m.error != "" || !slices.Equal(m.logs, []string{"WARNING done"}) {
		t.Errorf("%s: %v", m.error, m.logs)
	}
}

func TestTheHostNamesThePackages(t *testing.T) {
	m := play(t, "packages: [{name: fake, version: 0.1.0}]\n")
	if !slices.Equal(m.packages, []string{"fake 0.1.0"}) {
		t.Errorf("packages: %v", m.packages)
	}
}

func TestAStepThatRefersToWhatWasExpectedToFailIsLeftOut(t *testing.T) {
	m := play(t, `
steps:
  - {register: bad, type: "fake:index:Bad", expectError: no such type}
  - {register: web, type: "fake:index:Named", when: "${bad.arn} == x"}
  - {log: "${bad.arn}"}
  - {assert: "${bad.arn} == x"}
  - {register: last, type: "fake:index:Named"}
`)
	if m.error != "" || m.sorted() != "bad last proj-dev" || len(m.logs) != 0 {
		t.Errorf("%s: %s, %v", m.error, m.sorted(), m.logs)
	}
}

func TestAStepNamesThePackageThatAnEarlierOneRegisters(t *testing.T) {
	m := play(t, `
steps:
  - {package: more, plugin: fake, extension: {name: gates, version: 1.0.0, value: Gate}}
  - {register: web, type: "fake:index:Gate", options: {package: more}}
`)
	last := m.requests[len(m.requests)-1]
	if m.error != "" || last.Name != "web" || last.PackageRef != "fake+gates" {
		t.Errorf("%s: %v", m.error, last)
	}
	m = play(t, `steps: [{register: web, type: "fake:index:Gate", options: {package: more}}]`)
	if !strings.Contains(m.error, "there is no earlier package named more") {
		t.Errorf("without the package: %s", m.error)
	}
}
