package importfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/terminal/importfile"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

var dev = deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}

func TestAFileResolvesToImportsInTheirOrder(t *testing.T) {
	file, err := importfile.Parse([]byte(`{
		"nameTable": {"admin": "urn:pulumi:dev::shop::pulumi:providers:aws::east"},
		"resources": [
			{"type": "aws:s3:Bucket", "name": "bucket one", "id": "b-1", "parent": "site", "provider": "admin",
				"properties": ["tags"], "version": "6.1.0"},
			{"type": "app:x:Site", "name": "site", "logicalName": "the site", "component": true},
			{"type": "aws:s3:Bucket", "logicalName": "bucket_one", "id": "b-2", "provider": "own"},
			{"type": "pulumi:providers:aws", "name": "own", "inputs": {"region": "eu"}}
		]}`))
	if err != nil {
		t.Fatal(err)
	}
	imports, variables, err := file.Resolve(dev, true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, in := range imports {
		u := string(in.URN(dev))
		got = append(got, fmt.Sprintf("%s = %s protect=%v", variables[u], u, in.Protect))
	}
	want := []string{
		"site = urn:pulumi:dev::shop::app:x:Site::the site protect=true",
		"bucket_one = urn:pulumi:dev::shop::app:x:Site$aws:s3:Bucket::bucket one protect=true",
		"own = urn:pulumi:dev::shop::pulumi:providers:aws::own protect=false",
		"bucket_one2 = urn:pulumi:dev::shop::aws:s3:Bucket::bucket_one protect=true",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("it resolves to\n%s", strings.Join(got, "\n"))
	}
	if imports[1].Provider != string(file.NameTable["admin"]) || imports[3].Provider != string(imports[2].URN(dev)) {
		t.Errorf("the providers are %q and %q", imports[1].Provider, imports[3].Provider)
	}
}

func TestAFileThatCannotBeImportedIsRefusedWithAReason(t *testing.T) {
	for reason, text := range map[string]string{
		"is not an import file":         `[]`,
		"unknown field":                 `{"resources": [{"tpye": "a:b:C"}]}`,
		"has no type":                   `{"resources": [{"name": "x", "id": "1"}]}`,
		"has no name":                   `{"resources": [{"type": "a:b:C", "id": "1"}]}`,
		"still has <PLACEHOLDER>":       `{"resources": [{"type": "a:b:C", "name": "x", "id": "<PLACEHOLDER>"}]}`,
		"neither in nameTable nor in":   `{"resources": [{"type": "a:b:C", "name": "x", "id": "1", "parent": "y"}]}`,
		"is its own parent or provider": `{"resources": [{"type": "a:b:C", "name": "x", "id": "1", "parent": "x"}]}`,
		"is not a URN":                  `{"nameTable": {"y": "y"}}`,
		"outputs, which are not":        `{"resources": [{"type": "a:b:C", "name": "x", "id": "1", "outputs": {}}]}`,
		"providerInputs are not":        `{"providerInputs": {"x": {}}}`,
		"the name of several resources": `{"resources": [{"type": "a:b:C", "name": "x", "id": "1"},
			{"type": "a:b:D", "name": "x", "id": "1"}, {"type": "a:b:E", "name": "y", "id": "1", "parent": "x"}]}`,
	} {
		file, err := importfile.Parse([]byte(text))
		if err == nil {
			_, _, err = file.Resolve(dev, true)
		}
		if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAPreviewIsWrittenWithPlaceholders(t *testing.T) {
	row := func(op apitype.OpType, u string, made apitype.StepEventStateMetadata) *projection.Row {
		return &projection.Row{Op: op, URN: u, Name: u[strings.LastIndex(u, "::")+2:],
			Type: strings.Split(u[:strings.LastIndex(u, "::")], "::")[2], Metadata: apitype.StepEventMetadata{New: &made}}
	}
	const prefix = "urn:pulumi:dev::shop::"
	made := func(parent, provider string) apitype.StepEventStateMetadata {
		return apitype.StepEventStateMetadata{Custom: provider != "", Parent: parent, Provider: provider}
	}
	stack := prefix + "pulumi:pulumi:Stack::shop-dev"
	own := made(stack, "")
	own.Custom, own.Inputs = true, map[string]any{"region": "eu", "token": "[secret]"}
	file, notes := importfile.OfPreview([]*projection.Row{
		row(apitype.OpCreate, stack, made("", "")),
		row(apitype.OpSame, prefix+"app:x:Site::site", made(stack, "")),
		row(apitype.OpCreate, prefix+"pulumi:providers:aws::default_6_1_0", made("", "")),
		row(apitype.OpCreate, prefix+"pulumi:providers:aws::own", own),
		row(apitype.OpCreate, prefix+"aws:s3:Bucket::site", made(prefix+"app:x:Site::site",
			prefix+"pulumi:providers:aws::default_6_1_0::id")),
		row(apitype.OpCreate, prefix+"app:x:Group::group", made(stack, "")),
		row(apitype.OpUpdate, prefix+"aws:s3:Bucket::old", made(stack, prefix+"pulumi:providers:aws::own::id")),
		row(apitype.OpCreate, prefix+"aws:s3:Bucket::logs", made(prefix+"app:x:Group::group",
			prefix+"pulumi:providers:aws::own::id")),
	})
	text, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{
    "nameTable": {
        "site": "urn:pulumi:dev::shop::app:x:Site::site"
    },
    "resources": [
        {
            "type": "pulumi:providers:aws",
            "name": "own",
            "inputs": {
                "region": "eu"
            }
        },
        {
            "type": "aws:s3:Bucket",
            "name": "siteBucket",
            "logicalName": "site",
            "id": "<PLACEHOLDER>",
            "parent": "site",
            "version": "6.1.0"
        },
        {
            "type": "app:x:Group",
            "name": "group",
            "component": true
        },
        {
            "type": "aws:s3:Bucket",
            "name": "logs",
            "id": "<PLACEHOLDER>",
            "parent": "group",
            "provider": "own"
        }
    ]
}
`
	if string(text) != want {
		t.Errorf("the file is\n%s", text)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "token of the provider own") {
		t.Errorf("the notes are %q", notes)
	}
}
