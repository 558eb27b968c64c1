//go:build unix

package languages

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// transformsInNode marks, by transforms, what it registers: each appends its name to the links of a resource. Those of
// the remote component reach the children that its provider registers.
const transformsInNode = `
import * as pulumi from "@pulumi/pulumi";

class Auto extends pulumi.CustomResource {
    constructor(name: string, props: pulumi.Inputs, opts: pulumi.CustomResourceOptions = {}) {
        super("fake:index:Auto", name, { links: [], ...props }, { version: "0.1.0", ...opts });
    }
}

class Remote extends pulumi.ComponentResource {
    constructor(name: string, opts: pulumi.ComponentResourceOptions) {
        super("fake:index:Group", name, { prefix: "far" }, { version: "0.1.0", ...opts }, true);
    }
}

const mark = (word: string, options: pulumi.CustomResourceOptions = {}) =>
    async ({ type, props, opts }: pulumi.ResourceTransformArgs) => {
        if (!type.startsWith("fake:index:") || type === "fake:index:Group") {
            return undefined;
        }
        return { props: { ...props, links: [...(props.links ?? []), word] }, opts: { ...opts, ...options } };
    };

if (process.env.TRANSFORM === "fail") {
    pulumi.runtime.registerResourceTransform(async () => { throw new Error("no such tag"); });
}
pulumi.runtime.registerResourceTransform(mark("stack", { retainOnDelete: false }));
pulumi.runtime.registerInvokeTransform(async ({ token, args, opts }) => ({ args: { ...args, name: "near" }, opts }));

const near = new pulumi.ComponentResource("prog:index:Box", "box", {}, { transforms: [mark("box")] });
const first = new Auto("first", { name: "near" }, { parent: near, transforms: [mark("own", {
    ignoreChanges: ["size"], additionalSecretOutputs: ["zone"], customTimeouts: { create: "7m" },
    replaceOnChanges: ["zone"],
})] });
new Auto("second", { name: "behind" }, { transforms: [mark("late", { protect: false, dependsOn: [first] })] });
new Remote("group", { transforms: [mark("remote")] });
export const found = first.id.apply(() => pulumi.runtime.invoke("fake:index:lookup", { kind: "auto", name: "?" },
    { version: "0.1.0" })).apply((found: any) => found.id);
`

// transformsInGo does the same with one resource, of which a hook is told.
const transformsInGo = `
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func mark(word string) pulumi.ResourceTransform {
	return func(_ context.Context, args *pulumi.ResourceTransformArgs) *pulumi.ResourceTransformResult {
		if args.Type != "fake:index:Auto" {
			return nil
		}
		if os.Getenv("TRANSFORM") == "fail" {
			panic("no such tag")
		}
		links, _ := args.Props["links"].(pulumi.Array)
		args.Props["links"] = append(links, pulumi.String(word))
		return &pulumi.ResourceTransformResult{Props: args.Props, Opts: args.Opts}
	}
}

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		if err := ctx.RegisterResourceTransform(mark("stack")); err != nil {
			return err
		}
		var box pulumi.ResourceState
		if err := ctx.RegisterComponentResource("prog:index:Box", "box", &box,
			pulumi.Transforms([]pulumi.ResourceTransform{mark("box")})); err != nil {
			return err
		}
		told, err := ctx.RegisterResourceHook("told", func(args *pulumi.ResourceHookArgs) error {
			fmt.Println("the hook is told of", args.Name, args.ID, args.NewOutputs["generation"].NumberValue())
			return nil
		}, nil)
		if err != nil {
			return err
		}
		var first pulumi.CustomResourceState
		ctx.Export("found", pulumi.String("near"))
		return ctx.RegisterResource("fake:index:Auto", "first", pulumi.Map{"name": pulumi.String("near")}, &first,
			pulumi.Version("0.1.0"), pulumi.Parent(&box), pulumi.Transforms([]pulumi.ResourceTransform{mark("own")}),
			pulumi.ResourceHooks(&pulumi.ResourceHookBinding{AfterCreate: []*pulumi.ResourceHook{told}}))
	})
}
`

// transforms runs a program whose transforms must be applied in order: those of the resource, of its parents, of the
// stack. It returns what the first update says.
func transforms(t *testing.T, h *harness.Home, dir string, want map[string]string) (said string) {
	cloud, env := harness.Cloud(t)
	p := h.Deployctl(dir, env)
	useStack(t, p)
	said = p.Must(t, "up", "--yes") // with a preview
	links := map[string]string{}
	objects, err := cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	for _, o := range objects {
		var words []string
		list, _ := o.Properties["links"].([]any)
		for _, v := range list {
			if word := v.(string); !strings.HasPrefix(word, "group-auto-") { // the provider's own link
				words = append(words, word)
			}
		}
		links[o.Owner[strings.LastIndex(o.Owner, "::")+2:]] = strings.Join(words, " ")
	}
	if !maps.Equal(links, want) {
		t.Errorf("the transforms made %v, not %v", links, want)
	}
	if found := p.Outputs(t)["found"]; found != "near" {
		t.Errorf("the invoke found %v", found)
	}
	if unchanged := p.Update(t, "up"); len(unchanged.Changes) != 1 {
		t.Errorf("the second update makes %v", unchanged.Changes)
	}
	end := h.Deployctl(dir, env, "TRANSFORM=fail").Run(t, "up", "--yes", "--skip-preview")
	if said := end.Said(); end.Code == 0 || !strings.Contains(said, "a transform of") ||
		!strings.Contains(said, "no such tag") {
		t.Errorf("up ends with %d and says\n%s", end.Code, said)
	}
	if left, err := cloud.Objects(t.Context(), ""); err != nil || len(left) != len(objects) {
		t.Errorf("the cloud has %v (%v)", left, err)
	}
	return said
}

// optionsByTransforms makes sure that the state has the options that transforms have set.
func optionsByTransforms(t *testing.T, p *harness.Tool) {
	states := map[string]apitype.ResourceV3{}
	for _, r := range p.Deployment(t).Resources {
		states[r.URN.Name()] = r
	}
	first, second := states["first"], states["second"]
	if !slices.Equal(first.IgnoreChanges, []string{"size"}) || !slices.Equal(first.ReplaceOnChanges, []string{"zone"}) ||
		first.CustomTimeouts == nil || first.CustomTimeouts.Create != 420 || len(first.AdditionalSecretOutputs) != 1 {
		t.Errorf("first is stored as %+v", first)
	}
	if !slices.Contains(second.Dependencies, first.URN) {
		t.Errorf("second depends on %v", second.Dependencies)
	}
}

// hooksInNode registers hooks that write a line each time they run. A component, what is in it and a resource beside it
// have all of them; FAIL names a hook that fails.
const hooksInNode = `
import * as fs from "fs";
import * as pulumi from "@pulumi/pulumi";

const say = (line: string) => fs.appendFileSync(process.env.SAID!, line + "\n");
fs.appendFileSync(process.env.BEGINNINGS!, process.pid + "\n");

class Auto extends pulumi.CustomResource {
    constructor(name: string, props: pulumi.Inputs, opts: pulumi.CustomResourceOptions = {}) {
        super("fake:index:Auto", name, { arn: undefined, ...props }, { version: "0.1.0", ...opts });
    }
}
class Box extends pulumi.ComponentResource {
    constructor(name: string, opts: pulumi.ComponentResourceOptions) {
        super("prog:index:Box", name, {}, opts);
        this.registerOutputs({ full: true });
    }
}

const hook = (point: string, opts: pulumi.ResourceHookOptions = {}) => new pulumi.ResourceHook(point, async (args) => {
    say([point, args.name, args.id || "-", args.oldInputs?.size ?? "-", args.newInputs?.size ?? "-",
        args.oldOutputs?.generation ?? "-", args.newOutputs?.generation ?? "-",].join(" "));
    while (process.env.HOLD && point === "afterCreate" && args.name === "inside" && !fs.existsSync(process.env.HOLD)) {
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    if (process.env.FAIL === point + " " + args.name) {
        throw new Error("the hook does not like it");
    }
}, opts);
const hooks: pulumi.ResourceHookBinding = {
    beforeCreate: [hook("beforeCreate", { onDryRun: true })], afterCreate: [hook("afterCreate")],
    beforeUpdate: [hook("beforeUpdate")], afterUpdate: [hook("afterUpdate", { ignoreErrors: true })],
    beforeDelete: [hook("beforeDelete")], afterDelete: [hook("afterDelete")],
};
if (process.env.RETRY) {
    hooks.onError = [new pulumi.ErrorHook("again", async (args) => {
        say(["onError", args.name, args.failedOperation, args.errors.length].join(" "));
        return args.errors.length < 3;
    })];
}
if (process.env.SIZE) {
    const box = new Box("box", { hooks: { afterCreate: hooks.afterCreate, beforeCreate: hooks.beforeCreate } });
    new Auto("inside", { name: "inside", size: Number(process.env.SIZE) }, { hooks, parent: box });
}
`

// hooks runs a program with hooks around all kinds of steps. A line of a hook has its point, the resource, its id, the
// old and the new size, the old and the new generation.
func hooks(t *testing.T, h *harness.Home, dir string) {
	cloud, env := harness.Cloud(t)
	said := filepath.Join(t.TempDir(), "said")
	with := func(more ...string) *harness.Tool {
		return h.Deployctl(dir, append([]string{env, "SAID=" + said, "BEGINNINGS=" + said + ".pids"}, more...)...)
	}
	useStack(t, with())
	run := func(command string, works bool, objects int, want []string, more ...string) (text string) {
		t.Helper()
		harness.Must(t, os.WriteFile(said, nil, 0o600))
		end := with(more...).Run(t, strings.Fields(command)...)
		lines, err := os.ReadFile(said) //nolint:gosec // the test's own
		harness.Must(t, err)
		got := slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(lines)), "\n"))
		if slices.Sort(want); !slices.Equal(got, want) || works != (end.Code == 0) {
			t.Errorf("%s with %v ends with %d; its hooks said\n%q\nnot\n%q\nit says\n%s", command, more, end.Code, got,
				want, end.Said())
		}
		if left, err := cloud.Objects(t.Context(), ""); err != nil || len(left) != objects {
			t.Errorf("after %s with %v the cloud has %v (%v)", command, more, left, err)
		}
		return end.Said()
	}
	box, inside := "beforeCreate box - - - - -", "beforeCreate inside - - 1 - -"
	boxMade, made := "afterCreate box - - - - -", "afterCreate inside inside - 1 - 1"
	run("up --yes --skip-preview", false, 0, []string{box}, "SIZE=1", "FAIL=beforeCreate box")
	run("up --yes", true, 1, []string{box, box, boxMade, inside, inside, made}, "SIZE=1") // its preview runs one hook
	for _, r := range with().Deployment(t).Resources {
		if r.URN.Name() == "inside" && len(r.ResourceHooks) != 6 {
			t.Errorf("the state has the hooks %v", r.ResourceHooks)
		}
	}

	harness.Must(t, cloud.Set(t.Context(), fakecloud.Fault{Name: "refuse", Do: fakecloud.Fail, At: fakecloud.Before,
		Op: fakecloud.Update, Times: 2, Status: 403, Message: "not today"}))
	text := run("up --yes --skip-preview", true, 1, []string{"beforeUpdate inside inside 1 2 1 -",
		"onError inside update 1", "onError inside update 2", "afterUpdate inside inside 1 2 1 2"},
		"SIZE=2", "RETRY=1", "FAIL=afterUpdate inside")
	if !strings.Contains(text, `AfterUpdate hook "afterUpdate" failed: `) {
		t.Errorf("the warning is missing:\n%s", text)
	}
	text = run("destroy --yes --skip-preview", false, 1, []string{""})
	if !strings.Contains(text, "(beforeDelete, afterDelete)") {
		t.Errorf("destroy says\n%s", text)
	}
	text = run("up --yes --skip-preview", false, 0, []string{"beforeDelete inside inside 2 - 2 -",
		"afterDelete inside inside 2 - 2 -"}, "FAIL=afterDelete inside")
	if !strings.Contains(text, `after hook "afterDelete" failed: `) {
		t.Errorf("the error is missing:\n%s", text)
	}
	for _, r := range with().Deployment(t).Resources {
		if r.URN.Name() == "inside" {
			t.Error("the state still has what was deleted")
		}
	}
}

// afterHookRunsAgain kills the program while it runs the after hook of a create, and then the worker: the hook runs
// again each time, and the create does not.
func afterHookRunsAgain(t *testing.T, h *harness.Home, dir string) {
	cloud, env := harness.Cloud(t)
	said, hold := filepath.Join(t.TempDir(), "said"), filepath.Join(t.TempDir(), "go")
	p := h.Deployctl(dir, env, "SAID="+said, "BEGINNINGS="+said+".pids", "SIZE=1", "HOLD="+hold)
	useStack(t, p)
	up := p.Begin(t, "up", "--yes", "--skip-preview")
	saysTimes(t, said, "afterCreate inside", 1)
	harness.Must(t, syscall.Kill(begun(t, said+".pids", 1)[0], syscall.SIGKILL))
	saysTimes(t, said, "afterCreate inside", 2)
	var service struct{ PID int }
	harness.Must(t, json.Unmarshal([]byte(p.Must(t, "dev", "status", "--json")), &service))
	harness.Must(t, syscall.Kill(service.PID, syscall.SIGKILL))
	attach := p.Begin(t, "attach") // starts the service
	saysTimes(t, said, "afterCreate inside", 3)
	harness.Must(t, os.WriteFile(hold, nil, 0o600))
	for _, ends := range []func() harness.End{up, attach} {
		if end := ends(); end.Code != 0 {
			t.Errorf("%v ends with %d; it says\n%s", end.Args, end.Code, end.Said())
		}
	}
	if made, err := cloud.Effects(t.Context(), 0); err != nil || len(made) != 1 {
		t.Errorf("the cloud's effects are %v (%v)", made, err)
	}
}

// saysTimes waits until a file has n lines that begin with a text.
func saysTimes(t *testing.T, file, text string, n int) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("the hooks say %q %d times", text, n), func() bool {
		said, _ := os.ReadFile(file) //nolint:gosec // the test's own; it may not be there yet
		return strings.Count("\n"+string(said), "\n"+text) >= n
	})
}
