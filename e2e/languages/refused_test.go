//go:build unix

package languages

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// Both programs register one resource; with ASK they ask for something for it that is not supported, and go on as if
// nothing had been the matter.
const (
	askingInNode = `
import * as pulumi from "@pulumi/pulumi";

class Auto extends pulumi.CustomResource {
    constructor(name: string, opts: pulumi.CustomResourceOptions) {
        super("fake:index:Auto", name, {}, { version: "0.1.0", ...opts });
    }
}

const opts: pulumi.CustomResourceOptions = {};
switch (process.env.ASK) {
case "hook":
    opts.hooks = { afterCreate: [new pulumi.ResourceHook("greet", async () => {})] };
    break;
case "transform":
    opts.transforms = [async (args) => args];
    break;
case "stack transform":
    pulumi.runtime.registerResourceTransform(async (args) => args);
    break;
}
new Auto("kept", opts);
`
	askingInGo = `
package main

import (
	"context"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		var opts []pulumi.ResourceOption
		switch os.Getenv("ASK") {
		case "hook":
			hook, _ := ctx.RegisterResourceHook("greet", func(*pulumi.ResourceHookArgs) error { return nil }, nil)
			opts = append(opts, pulumi.ResourceHooks(&pulumi.ResourceHookBinding{AfterCreate: []*pulumi.ResourceHook{hook}}))
		case "transform":
			opts = append(opts, pulumi.Transforms([]pulumi.ResourceTransform{transform}))
		case "stack transform":
			_ = ctx.RegisterResourceTransform(transform)
		}
		var made pulumi.CustomResourceState
		_ = ctx.RegisterResource("fake:index:Auto", "kept", pulumi.Map{}, &made, append(opts, pulumi.Version("0.1.0"))...)
		return nil
	})
}

func transform(context.Context, *pulumi.ResourceTransformArgs) *pulumi.ResourceTransformResult { return nil }
`
)

// refusedInOurWords lets a program ask for what is not supported. Whatever its SDK makes of the refusal, the update
// fails, says what to remove, first and last, and deletes nothing.
func refusedInOurWords(t *testing.T, h *harness.Home, dir string) {
	cloud, env := harness.Cloud(t)
	p := h.Deployctl(dir, env)
	p.Must(t, "stack", "init", "asking")
	p.Must(t, "up", "--yes", "--skip-preview")
	for ask, refusal := range map[string]string{
		"hook":            `resource hooks ("greet") are not supported yet; remove them from the program`,
		"transform":       "transforms (of fake:index:Auto kept) are not supported yet; remove them from the program",
		"stack transform": "stack transforms are not supported yet; remove them from the program",
	} {
		t.Run(ask, func(t *testing.T) {
			end := h.Deployctl(dir, env, "ASK="+ask).Run(t, "up", "--yes", "--skip-preview")
			said := end.Said()
			if end.Code == 0 || !strings.Contains(said, refusal) || strings.Contains(said, "Pulumi CLI") {
				t.Errorf("up ends with %d and says\n%s", end.Code, said)
			}
			if i := strings.Index(said, "rror"); i < 0 || !strings.Contains(line(said[i:]), refusal) {
				t.Errorf("the first error is another one:\n%s", said)
			}
			left, err := cloud.Objects(t.Context(), "")
			if err != nil || len(left) != 1 {
				t.Errorf("the cloud has %v (%v)", left, err)
			}
		})
	}
}

func line(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
