//go:build unix

package languages

import (
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// sourcePlugin updates a stack with a component whose provider is TypeScript in the project. Its packages are installed
// on the worker.
func sourcePlugin(t *testing.T, h *harness.Home) {
	soaktest.Only(t)
	dir := t.TempDir()
	harness.Files{
		"Pulumi.yaml": "name: welcome\nruntime: scenario\npackages: {greetings: ./greetings}\n",
		"scenario.yaml": `
packages: [{name: greetings}]
steps:
  - {register: hello, type: "greetings:index:Greeting", component: true, remote: true, properties: {who: ann}}
outputs:
  text: ${hello.text}
`,
		"greetings/PulumiPlugin.yaml": "runtime: nodejs\n",
		"greetings/package.json": `{"name": "greetings", "main": "index.ts",
			"dependencies": {"@pulumi/pulumi": "3.248.0"},
			"devDependencies": {"@types/node": "^20.0.0", "typescript": "^5.0.0"}}`,
		"greetings/tsconfig.json": `{"compilerOptions": {"strict": true, "target": "es2020", "module": "commonjs",
			"moduleResolution": "node", "skipLibCheck": true}, "files": ["index.ts"]}`,
		"greetings/index.ts": `
import * as pulumi from "@pulumi/pulumi";

export interface GreetingArgs {
    who: pulumi.Input<string>;
}

export class Greeting extends pulumi.ComponentResource {
    public readonly text: pulumi.Output<string>;
    constructor(name: string, args: GreetingArgs, opts?: pulumi.ComponentResourceOptions) {
        super("greetings:index:Greeting", name, args, opts);
        this.text = pulumi.interpolate` + "`Hello, ${args.who}`" + `;
        this.registerOutputs({ text: this.text });
    }
}
`,
	}.Write(t, dir)
	p := h.Deployctl(dir)
	p.Must(t, "stack", "init", "dev")
	p.Update(t, "up")
	if text := p.Outputs(t)["text"]; text != "Hello, ann" {
		t.Errorf("the component says %v", text)
	}
	p.Update(t, "destroy")
}
