//go:build unix

package languages

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// policiesInNode is a policy pack: a zone is changed, a name is not allowed, and the resources of the stack are
// counted.
const policiesInNode = `
const pulumi = require("@pulumi/pulumi");
const { PolicyPack } = require("@pulumi/policy");

new PolicyPack("node-rules", {
    policies: [{
        name: "zoned", description: "Nothing is in zone a.", enforcementLevel: "remediate",
        remediateResource: (args) => args.props.zone === "a" ? { ...args.props, zone: "c" } : undefined,
    }, {
        name: "named", description: "Some names are not allowed.", enforcementLevel: "mandatory",
        configSchema: { properties: { forbidden: { type: "string", default: "bad" } } },
        validateResource: (args, report) => {
            const { forbidden } = args.getConfig();
            if (args.props.name === forbidden) {
                report("the name " + forbidden + " is not allowed in " + pulumi.getProject());
            }
        },
    }, {
        name: "counted", description: "Resources are counted.", enforcementLevel: "advisory",
        validateStack: (args, report) => {
            const named = args.resources.filter((r) => r.type === "fake:index:Named" && r.props.arn);
            report("the stack has " + named.length + " of them");
            report("deleted first: " + named.filter((r) => r.opts.deleteBeforeReplace).map((r) => r.name));
            report("the owner is " + args.stackTags.get("owner"));
        },
    }],
});
`

// nodePolicies checks a program with a policy pack in Node, whose packages are installed on the worker.
func nodePolicies(t *testing.T, h *harness.Home) {
	soaktest.Only(t)
	_, env := harness.Cloud(t)
	dir := t.TempDir()
	program := func(name string) harness.Files {
		return harness.Files{"scenario.yaml": "packages: [{name: fake, version: 0.1.0}]\nsteps:\n" +
			"  - {register: a, type: fake:index:Named, properties: {name: " + name + "}, " +
			"options: {deleteBeforeReplace: true}}\n"}
	}
	harness.Files{
		"Pulumi.yaml":             "name: checked\nruntime: scenario\n",
		"rules/PulumiPolicy.yaml": "runtime: nodejs\nversion: 2.0.0\n",
		"rules/index.js":          policiesInNode,
		"rules/package.json": `{"name": "node-rules", "version": "0.0.1", "main": "index.js", "dependencies": {` +
			`"@pulumi/policy": "1.21.0", "@pulumi/pulumi": "3.248.0"}}`,
		"config.json": `{"named": {"forbidden": "worse"}}`,
	}.Write(t, dir)
	program("bad").Write(t, dir)
	p := h.Deployctl(dir, env)
	p.Must(t, "stack", "init", "dev")
	p.Must(t, "stack", "tag", "set", "owner", "ann")
	refused := p.Run(t, "up", "--yes", "--skip-preview", "--policy-pack", "rules")
	for _, text := range []string{"node-rules 2.0.0", "remediated zoned: 1", "mandatory named (fake:index:Named a)",
		"the name bad is not allowed in checked"} {
		if refused.Code != 1 || !strings.Contains(refused.Said(), text) {
			t.Errorf("the update ends with %d and does not say %q but\n%s", refused.Code, text, refused.Said())
		}
	}
	said := p.Must(t, "up", "--yes", "--skip-preview", "--policy-pack", "rules", "--policy-pack-config", "config.json")
	for _, text := range []string{"the stack has 1 of them", "deleted first: a", "the owner is ann"} {
		if !strings.Contains(said, text) {
			t.Errorf("the update does not say %q but\n%s", text, said)
		}
	}
	if state := p.Must(t, "stack", "export"); !strings.Contains(state, `"zone": "c"`) {
		t.Errorf("the state is\n%s", state)
	}
}
