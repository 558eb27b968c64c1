//go:build unix

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

var yamlAndFake = harness.Files{"Pulumi.yaml": `
name: yaml-and-fake
runtime: yaml
config:
  password: {type: string, secret: true}
resources:
  named:
    type: fake:index:Named
    properties: {name: named, size: 3, secretText: "${password}", settings: {nested: [1, true, {deep: "${password}"}]}}
  auto:
    type: fake:index:Auto
    properties: {links: ["${named.arn}"], settings: {empty: {}, list: [], text: ""}}
    options: {dependsOn: ["${server}"]}
  server:
    type: fake:index:Server
    properties: {secretText: constant}
  elsewhere:
    type: pulumi:providers:fake
    properties: {account: other, token: "${password}"}
  there:
    type: fake:index:Named
    properties: {name: there, attachedTo: "${auto.arn}"}
    options: {provider: "${elsewhere}", additionalSecretOutputs: [endpoint], ignoreChanges: [size]}
outputs:
  arn: ${auto.arn}
  password: ${password}
  key: ${named.accessKey}
  nested: {list: ["${there.endpoint}", plain]}
`}

var yamlAndS3 = harness.Files{"Pulumi.yaml": `
name: yaml-and-s3
runtime: yaml
config:
  password: {type: string, secret: true}
resources:
  site:
    type: deployctl:s3:Bucket
    properties: {publicRead: true, forceDestroy: true, tags: {of: interop}}
  note:
    type: deployctl:s3:Object
    properties: {bucket: "${site.name}", key: note.txt, content: "the password is ${password}"}
  picture:
    type: deployctl:s3:Object
    properties: {bucket: "${site.name}", key: picture.svg, source: {fn::fileAsset: ./www/picture.svg}}
  www:
    type: deployctl:s3:Directory
    properties: {source: ./www, bucket: "${site.name}", index: files.html}
  hello:
    type: deployctl:command:Run
    properties: {create: "echo hello", environment: {PASSWORD: "${password}"}}
outputs:
  url: ${note.url}
  said: ${hello.stdout}
  files: ${www.urls}
  password: ${password}
`, "www/picture.svg": "<svg/>", "www/page.html": "<p>page</p>"}

var scenario = harness.Files{
	"Pulumi.yaml": "name: scenario\nruntime: scenario\n",
	"scenario.yaml": `
steps:
  - register: owner
    type: app:index:Owner
    component: true
  - register: web
    type: fake:index:Auto
    properties: {size: 2, secretText: !secret hush, settings: {password: "${config.password}"}}
    options: {parent: owner, customTimeouts: {create: 5m, delete: 90s}, additionalSecretOutputs: [arn]}
  - register: db
    type: fake:index:Exclusive
    properties: {name: "db-${stack}", links: ["${web.arn}"]}
    options: {parent: owner, dependsOn: [web], deletedWith: web, replaceOnChanges: [size], ignoreChanges: [zone]}
  - register: kept
    type: fake:index:Named
    properties: {name: "kept-${stack}", blobSize: 2000}
    options: {retainOnDelete: true, aliases: [{name: former}]}
  - read: seen
    type: fake:index:Named
    id: ${kept.id}
  - register: group
    type: fake:index:Group
    remote: true
    properties: {prefix: "group-${stack}", size: 4}
  - register: fleet
    type: fake:index:Fleet
    properties: {name: "fleet-${stack}", settings: {first: one, hidden: "${config.password}"}}
  - {package: gates, plugin: fake, extension: {name: gates, version: 1.0.0, value: Gate}}
  - register: gate
    type: fake:index:Gate
    properties: {name: "gate-${stack}"}
    options: {package: gates}
  - outputs: owner
    values: {web: "${web.arn}"}
outputs:
  arn: ${web.arn}
  password: !secret "${config.password}"
  seen: ${seen.generation}
`}

var goProgram = harness.Files{"Pulumi.yaml": "name: go-program\nruntime: go\n", "main.go": `
package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

type thing struct {
	pulumi.CustomResourceState
	Arn    pulumi.StringOutput ` + "`pulumi:\"arn\"`" + `
	Stdout pulumi.StringOutput ` + "`pulumi:\"stdout\"`" + `
}

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		password := config.RequireSecret(ctx, "password")
		var web, run thing
		if err := ctx.RegisterResource("fake:index:Auto", "web", pulumi.Map{
			"size": pulumi.Int(3), "settings": pulumi.Map{"password": password},
		}, &web); err != nil {
			return err
		}
		if err := ctx.RegisterResource("deployctl:command:Run", "run", pulumi.Map{
			"create": pulumi.String("echo $ARN"), "environment": pulumi.Map{"ARN": web.Arn, "PASSWORD": password},
		}, &run, pulumi.Timeouts(&pulumi.CustomTimeouts{Create: "3m"})); err != nil {
			return err
		}
		ctx.Export("arn", web.Arn)
		ctx.Export("said", run.Stdout)
		ctx.Export("password", password)
		return nil
	})
}
`, "go.mod": example("go", "go.mod"), "go.sum": example("go", "go.sum")}

var nodeDynamic = harness.Files{
	"Pulumi.yaml": "name: node-dynamic\nruntime: nodejs\n", "package.json": example("typescript", "package.json"),
	"tsconfig.json": example("typescript", "tsconfig.json"), "file.ts": example("typescript", "file.ts"), "index.ts": `
import * as os from "os";
import * as path from "path";
import * as pulumi from "@pulumi/pulumi";
import { File } from "./file";

class Auto extends pulumi.CustomResource {
    declare readonly arn: pulumi.Output<string>;
    constructor(name: string, args: pulumi.Inputs, opts?: pulumi.CustomResourceOptions) {
        super("fake:index:Auto", name, { ...args, arn: undefined }, opts);
    }
}

const password = new pulumi.Config().requireSecret("password");
const auto = new Auto("auto", { secretText: password, settings: { list: [1, "two", { three: password }] } });
const file = new File("file", {
    path: path.join(os.tmpdir(), ` + "`interop-${pulumi.getStack()}-${process.env.FAKECLOUD_ENDPOINT!.replace(/\\W/g, \"-\")}`" + `),
    text: pulumi.interpolate` + "`${auto.arn} ${password}`" + `,
}, { dependsOn: auto });
export const text = file.text;
export const arn = auto.arn;
export const hidden = password;
`}

// example is a file of an example.
func example(name, file string) string {
	text, err := os.ReadFile(filepath.Join(harness.Root(), "examples", name, file)) //nolint:gosec // of the repository
	if err != nil {
		panic(err) // the repository is not whole
	}
	return string(text)
}

// decode gives JSON with its keys sorted.
func decode(t *testing.T, text string) string {
	t.Helper()
	var value any
	harness.Must(t, json.Unmarshal([]byte(text), &value))
	sorted, err := json.MarshalIndent(value, "", "  ")
	harness.Must(t, err)
	return string(sorted)
}
