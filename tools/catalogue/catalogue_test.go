package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFactsAboutTerraformAreReadFromTheSourceOfUpjetProviders(t *testing.T) {
	f := facts{}
	if err := f.readExternalNames(write(t, "externalname.go", `package config
var table = map[string]config.ExternalName{
	"x_named": config.NameAsIdentifier,
	"x_parameter": config.ParameterAsIdentifier("bucket"),
	"x_server": config.IdentifierFromProvider,
	"x_template": config.TemplatedStringAsIdentifier("name",
		"/subscriptions/{{ .setup.configuration.subscription_id }}" + "/groups/{{ .parameters.group }}/{{ .external_name }}"),
	"x_server_part": config.TemplatedStringAsIdentifier("", "{{ .parameters.group }}/{{ .external_name }}"),
	"x_formatted": FormattedIdentifierFromProvider(":", "cluster_name", "addon_name"),
	"x_last": FormattedIdentifierUserDefinedNameLast("name", "/", "parent"),
	"x_first": FormattedIdentifierUserDefinedNameFirst("name", "/", "parent"),
	"x_arn": config.TemplatedStringAsIdentifier("name", fullARNTemplate("ecs", "cluster/{{ .external_name }}")),
	"x_custom": somethingElse("name"),
	"x_unknown": config.TemplatedStringAsIdentifier("name", "{{ .external_name | ToLower }}"),
	"x_typo": config.TemplatedStringAsIdentifier("name", "a/{ .parameters.b }/{{ .external_name }}"),
}`), "upjet"); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for key, all := range f {
		got[key] = all[0].Template
	}
	want := map[string]string{
		"x_named": "${name}", "x_parameter": "${bucket}", "x_server": "", "x_server_part": "",
		"x_template":  "/subscriptions/${value:subscription}/groups/${group}/${name}",
		"x_formatted": "${cluster_name}:${addon_name}", "x_last": "${parent}/${name}", "x_first": "${name}/${parent}",
		"x_arn": "arn:${value:partition}:ecs:${value:region}:${value:account}:cluster/${name}",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// archive makes a package of npm.
func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, "x.tgz", b.String())
}

func TestAPackageSaysWhatItsTypesAreAndHowTheyAreImported(t *testing.T) {
	s, err := readSDK(archive(t, map[string]string{
		"package.json": `{"name": "@pulumi/x", "version": "v1.2.3"}`,
		"storage/thing.js": "    static __pulumiType = 'x:storage/thing:Thing';\n" +
			"            resourceInputs[\"name\"] = args?.name;\n" +
			"            resourceInputs[\"nested\"] = args?.nested ? pulumi.secret(args.nested) : undefined;\n",
		"storage/thing.d.ts": "/**\n * const a = new x.storage.Thing(\"a\", {});\n * ## Import\n" +
			" * ### Identity Schema\n * #### Required\n" +
			" * * `name` (String) its name\n * #### Optional\n * * `region` (String) where\n" +
			" * Using `pulumi import`, import it using " +
			"the `name`. For example:\n * $ pulumi import x:storage/thing:Thing example my/thing\n */\n" +
			"export interface ThingArgs {\n    name?: pulumi.Input<string | undefined>;\n    size: pulumi.Input<number>;\n" +
			"    tags?: pulumi.Input<{\n        [key: string]: pulumi.Input<string>;\n    } | undefined>;\n" +
			"    items?: pulumi.Input<pulumi.Input<string>[]>;\n    nested?: pulumi.Input<inputs.Nested>;\n}\n",
		"storage/getThings.js": `pulumi.runtime.invoke("x:storage/getThings:getThings", {`,
		"storage/getThings.d.ts": "export interface GetThingsArgs {\n    tags?: {\n        [key: string]: string;\n    };\n" +
			"}\n" +
			"export interface GetThingsResult {\n    readonly ids: string[];\n}\n",
		"types/input.d.ts": "export interface ThingArgs {\n    wrong: string;\n}\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := s.Resources["x:storage/thing:Thing"]
	if r == nil || s.Package != "x" || s.Version != "1.2.3" || s.Pages[r.Token] != 1 {
		t.Fatalf("%+v", s)
	}
	if want := map[string]input{"name": {Kind: "string"}, "size": {Kind: "number", Required: true},
		"tags": {Kind: "map"}, "items": {Kind: "list"},
		"nested": {Kind: "object", Secret: true}}; !reflect.DeepEqual(r.Inputs, want) {
		t.Errorf("inputs %v", r.Inputs)
	}
	if !reflect.DeepEqual(r.Imports, []string{"my/thing"}) || !reflect.DeepEqual(r.Identity, []string{"name"}) ||
		!named(r.Prose, "name") || named(r.Prose, "region") {
		t.Errorf("%q %q %q", r.Imports, r.Identity, r.Prose)
	}
	f := s.Functions["x:storage/getThings:getThings"]
	if f == nil || f.Inputs["tags"].Kind != "map" || !f.Results["ids"] {
		t.Errorf("%+v", f)
	}
}

func TestOnlySourcesThatAgreeAreTrusted(t *testing.T) {
	text := input{Kind: "string"}
	example := func(imports string, names ...string) *resource {
		r := &resource{Token: "x:index:Thing", Inputs: map[string]input{}, Imports: strings.Split(imports, " ")}
		for _, n := range names {
			r.Inputs[n] = text
		}
		return r
	}
	prose := example("my-bucket", "bucket")
	prose.Prose = "import it using the `bucket`."
	part := example("abc/my-stage", "name")
	part.Prose = "import it using the API identifier and stage name."
	for name, c := range map[string]struct {
		pkg        string
		said       []fact
		r          *resource
		template   string
		confidence string
	}{
		"two agree": {"aws", []fact{{"${bucket}", "upjet", false}}, prose, "${bucket}", "high"},
		"one alone": {"aws", []fact{{"${bucket}", "upjet", false}}, example("my-bucket", "bucket"), "${bucket}",
			"medium"},
		"a part":     {"aws", []fact{{"${name}", "upjet", false}}, part, "", ""},
		"untested":   {"aws", []fact{{"${bucket}", "upjet-untested", false}}, example("my-bucket", "bucket"), "", ""},
		"contradict": {"aws", []fact{{"${name}", "upjet", false}}, example("vpc-0123456789abcdef0", "name"), "", ""},
		"no import": {"aws", []fact{{"${name}", "upjet", false}},
			&resource{Inputs: map[string]input{"name": text}}, "", ""},
		"in parts":    {"aws", []fact{{"${a}/${b}", "upjet", false}}, example("one/two", "a", "b"), "${a}/${b}", "high"},
		"other form":  {"aws", []fact{{"${a}/${b}", "upjet", false}}, example("one:two", "a", "b"), "", ""},
		"server made": {"gcp", []fact{{"", "magic-modules", true}}, example("things/{{name}}", "name"), "", ""},
		"of one origin": {"gcp", []fact{{"t/${name}", "magic-modules", false}}, example("t/{{name}}", "name"),
			"t/${name}", "medium"},
		"of two origins": {"gcp", []fact{{"t/${name}", "magic-modules", false}, {"t/${name}", "upjet", false}},
			example("t/{{name}}", "name"), "t/${name}", "high"},
		"they differ": {"gcp", []fact{{"t/${name}", "magic-modules", false}, {"u/${name}/x", "upjet", false}},
			example("t/{{name}}", "name"), "", ""},
		"a path in another spelling": {"azure",
			[]fact{{"/subscriptions/${value:subscription}/resourcegroups/${group}/things/${name}", "upjet", false}},
			example("/subscriptions/0/resourceGroups/g/Things/t", "group", "name"),
			"/subscriptions/${value:subscription}/resourceGroups/${group}/Things/${name}", "high"},
	} {
		f := &file{Package: c.pkg}
		e, why := f.agreed(c.said, c.r)
		switch {
		case c.template == "" && why == "":
			t.Errorf("%s: %+v", name, e)
		case c.template != "" && (len(e.Rules) != 1 || e.Rules[0].Read != c.template ||
			e.Rules[0].Confidence != c.confidence):
			t.Errorf("%s: %+v %s", name, e, why)
		}
	}
}

func TestARuleThatDoesNotFitTheSchemaIsLeftOut(t *testing.T) {
	r := &resource{Token: "x:index:Thing", Inputs: map[string]input{"name": {Kind: "string"}, "tags": {Kind: "map"},
		"items": {Kind: "list"}, "labels": {Kind: "list"}, "password": {Kind: "string", Secret: true}}}
	get := &resource{Token: "x:index:get", Inputs: map[string]input{"tags": {Kind: "map"}},
		Results: map[string]bool{"ids": true}}
	call := func(function, arg, ids string) rule {
		return rule{Mark: "tags.k",
			Invoke: map[string]any{"function": function, "args": map[string]any{arg: "${mark}"}, "ids": ids}}
	}
	for name, c := range map[string]struct {
		rule rule
		fits bool
	}{
		"an input":                 {rule{Read: "a/${name}"}, true},
		"an input of another name": {rule{Read: "${thing_name}"}, true},
		"no input":                 {rule{Read: "${other}"}, false},
		"with a default":           {rule{Read: "${name|x}"}, true},
		"no input with a default":  {rule{Read: "${other|x}/${name}"}, false},
		"a list":                   {rule{Read: "${items}"}, false},
		"a secret":                 {rule{Read: "${name}/${password}"}, false},
		"a value":                  {rule{Read: "${value:project}/${config:x}/${name}"}, true},
		"a call":                   {call("x:index:get", "tags", "ids[*]"), true},
		"no function":              {call("x:index:list", "tags", "ids[*]"), false},
		"no argument":              {call("x:index:get", "labels", "ids[*]"), false},
		"no result":                {call("x:index:get", "tags", "arns[*]"), false},
		"a mark in no map":         {rule{Read: "${name}", Mark: "labels.k"}, false},
		"a mark in a list":         {rule{Read: "${name}", Mark: "labels[].k"}, true},
	} {
		f := &file{Terraform: "x_", Types: map[string]entry{}, Left: map[string]string{}, sdk: &sdk{
			Resources: map[string]*resource{r.Token: r}, Functions: map[string]*resource{get.Token: get}}}
		f.add("x_thing", r.Token, entry{Rules: []rule{c.rule}})
		if _, in := f.Types["x_thing"]; in != c.fits || (f.Left[r.Token] == "") != c.fits {
			t.Errorf("%s: %v %v", name, f.Types, f.Left)
		}
	}
}

func TestPathsOfAzureBelongToTypesWithoutDoubt(t *testing.T) {
	container := strings.Split("Microsoft.Storage/storageAccounts/a/blobServices/default/containers/c", "/")
	for name, c := range map[string]struct {
		path         []string
		module, name string
		args         []string
		want         string
	}{
		"nested": {container, "storage", "BlobContainer", []string{"accountName", "containerName"},
			"Microsoft.Storage/storageAccounts/${accountName}/blobServices/default/containers/${containerName}"},
		"another module": {container, "network", "BlobContainer", []string{"accountName", "containerName"}, ""},
		"another type":   {container, "storage", "QueueContainer", []string{"accountName", "containerName"}, ""},
		"an argument more": {container, "storage", "BlobContainer",
			[]string{"accountName", "containerName", "policyName"}, ""},
		"an argument less": {container, "storage", "BlobContainer", []string{"containerName"}, ""},
	} {
		got, ok := assigned(c.path, c.module, c.name, c.args)
		if ok != (c.want != "") || ok && !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
}

func TestTypesAreBoundWhereNamesLeaveNoDoubt(t *testing.T) {
	f := &file{Terraform: "x_", bound: map[string]string{}, sdk: &sdk{Resources: map[string]*resource{
		"x:storage/bucket:Bucket": nil, "x:ec2/vpc:Vpc": nil, "x:rds/cluster:Cluster": nil, "x:ecs/cluster:Cluster": nil,
	}}}
	f.bind([]string{"x_storage_bucket", "x_vpc", "x_cluster", "x_ecs_cluster"})
	if want := map[string]string{"x_storage_bucket": "x:storage/bucket:Bucket", "x_vpc": "x:ec2/vpc:Vpc",
		"x_ecs_cluster": "x:ecs/cluster:Cluster"}; !reflect.DeepEqual(f.bound, want) {
		t.Errorf("%v", f.bound)
	}
}

func TestIdsOfCloudControlAreJoinedOrLookedUpByName(t *testing.T) {
	text := input{Kind: "string"}
	r := &resource{Inputs: map[string]input{"restApiId": text, "httpMethod": text, "name": text}}
	for name, c := range map[string]struct{ row, want string }{
		"from inputs": {"AWS::A::B|A1 id = inputs|/properties/RestApiId /properties/HttpMethod|True|True|",
			"${restApiId}|${httpMethod}"},
		"no input":   {"AWS::A::B|A1 id = inputs|/properties/Other|True|True|", ""},
		"by name":    {"AWS::A::B|C  id server-assigned|/properties/Arn|True|True|", "list"},
		"needs more": {"AWS::A::B|C  id server-assigned|/properties/Arn|True|True|DomainId", ""},
		"not listed": {"AWS::A::B|C  id server-assigned|/properties/Arn|False|True|", ""},
	} {
		one, why := cloudControl(r, strings.Split(c.row, "|"))
		got := one.Read
		if one.List != nil {
			got = "list"
		}
		if got != c.want || (why == "") != (c.want != "") {
			t.Errorf("%s: %q %s", name, got, why)
		}
	}
}

func TestARuleAppliesToAnOlderVersionThatGivesTheSame(t *testing.T) {
	version := func(v string, types map[string]entry) *file {
		f := &file{Types: types, Checked: v, sdk: &sdk{Version: v, Resources: map[string]*resource{}}}
		f.Versions = f.sdk.versions(f.sdk.major())
		for _, e := range types {
			f.sdk.Resources[e.Token] = &resource{}
		}
		return f
	}
	of := func(read, source string) entry {
		return entry{Token: "x:index:" + source, Rules: []rule{{Read: read, Source: source}}}
	}
	same := of("${name}", "documentation")
	same.Rules = []rule{{Read: "${name}", Source: "upjet + documentation"}}
	f := version("7.48.0", map[string]entry{"a": same, "b": of("${name}", "b"), "c": of("${name}", "c")})
	f.extend(version("6.83.4", map[string]entry{"a": of("${name}", "documentation"), "b": of("${id}", "b")}))
	if f.Versions != ">=6.0.0 <8.0.0" || f.Checked != "6.83.4, 7.48.0" {
		t.Errorf("%q %q", f.Versions, f.Checked)
	}
	for key, want := range map[string]string{"a": "", "b": ">=7.0.0 <8.0.0", "c": ">=7.0.0 <8.0.0"} {
		if got := f.Types[key].Rules[0].Versions; got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
}

func TestWhatIsWrittenByHandCanBeRead(t *testing.T) {
	all, err := readCurated()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if _, err := c.rules(); err != nil {
			t.Error(err)
		}
		if n := len(strings.Fields(c.Popular)); n != 0 && n != 50 {
			t.Errorf("%s has %d common types", c.Package, n)
		}
	}
}
