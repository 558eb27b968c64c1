package catalogue

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gopkg.in/yaml.v3"

	"github.com/deployctl/deployctl/internal/settle/settlerule"
)

// packages are the names of all packages of the catalogue.
func packages(t testing.TB) []string {
	t.Helper()
	entries, err := embedded.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return all
}

func rulesOf(t testing.TB, token string) settlerule.Set {
	t.Helper()
	set, ok, err := New().Rules(t.Context(), token, "", nil)
	if err != nil || !ok {
		t.Fatalf("%s: %v %v", token, ok, err)
	}
	return set
}

func TestThereAreTwoThousandTypes(t *testing.T) {
	types := 0
	for _, pkg := range packages(t) {
		f, err := packageFile(pkg)
		if err != nil {
			t.Fatal(err)
		}
		types += len(f.types)
	}
	if types < 2000 {
		t.Errorf("there are %d", types)
	}
}

// The files are read line by line: what YAML says must be the same.
func TestFilesAreYAMLAndSmall(t *testing.T) {
	size := 0
	for _, pkg := range packages(t) {
		text, err := embedded.ReadFile(pkg + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		size += len(text)
		var whole struct {
			Package string
			Types   map[string]map[string]any
			Without map[string]string
		}
		if err := yaml.Unmarshal(text, &whole); err != nil {
			t.Fatalf("%s: %v", pkg, err)
		}
		f, err := parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", pkg, err)
		}
		if whole.Package != pkg || f.Package != pkg || len(whole.Types) != len(f.types) ||
			len(whole.Without) != len(f.without) {
			t.Errorf("%s: %d types, read as %d", pkg, len(whole.Types), len(f.types))
		}
		for key, line := range f.types {
			var one map[string]any
			if err := json.Unmarshal([]byte(line), &one); err != nil || fmt.Sprint(one) != fmt.Sprint(whole.Types[key]) {
				t.Errorf("%s: %s is read as %v (%v)", pkg, key, one, err)
			}
		}
	}
	if size > 10<<20 {
		t.Errorf("the catalogue has %d bytes", size)
	}
}

func TestEveryRuleSaysWhereItIsFrom(t *testing.T) {
	for _, pkg := range packages(t) {
		f, err := packageFile(pkg)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range f.Sources {
			names = append(names, s.Name)
			if s.Of == "" || s.Licence == "" || s.Version == "" && f.Checked != "" {
				t.Errorf("%s: source %+v", pkg, s)
			}
		}
		for token := range f.tokens {
			if len(f.tokens) > 0 && len(f.types) != len(f.tokens) {
				t.Fatalf("%s: %d types have %d tokens", pkg, len(f.types), len(f.tokens))
			}
			for _, r := range rulesOf(t, token).Rules {
				if r.Confidence != "high" && r.Confidence != "medium" {
					t.Errorf("%s: confidence %q", token, r.Confidence)
				}
				for _, s := range strings.Split(r.Source, " + ") {
					if !slices.Contains(names, s) {
						t.Errorf("%s: source %q is none of %v", token, s, names)
					}
				}
			}
		}
	}
}

// schemas has the kinds of the inputs of types and functions, as tools/catalogue recorded them.
func schemas(t *testing.T) map[string]map[string]map[string]string {
	t.Helper()
	f, err := os.Open("testdata/schemas.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]map[string]string
	if err := json.NewDecoder(z).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryPropertyOfARuleIsAnInputOfItsType(t *testing.T) {
	recorded := schemas(t)
	checked := 0
	for _, pkg := range packages(t) {
		f, err := packageFile(pkg)
		if err != nil {
			t.Fatal(err)
		}
		for token := range f.tokens {
			if f.Checked == "" {
				continue
			}
			inputs, ok := recorded[pkg][token]
			if !ok {
				t.Errorf("%s is in no schema", token)
			}
			for _, r := range rulesOf(t, token).Rules {
				checked++
				if err := fits(&r, inputs, recorded[pkg]); err != nil {
					t.Errorf("%s: %v", token, err)
				}
			}
		}
	}
	if checked < 2000 {
		t.Errorf("%d rules are checked", checked)
	}
}

// fits reports why a rule does not fit the inputs of its type, or the function that it calls.
func fits(r *settlerule.Rule, inputs map[string]string, functions map[string]map[string]string) error {
	for _, v := range r.Variables() {
		if v.Origin != settlerule.Input {
			continue
		}
		name := fmt.Sprint(v.Path[0])
		if kind := inputs[name]; kind == "" || len(v.Path) == 1 && (kind == "map" || kind == "list") {
			return fmt.Errorf("%s is of kind %q", name, kind)
		}
	}
	if !r.Mark.IsZero() {
		want := "map"
		if r.Mark.Pairs {
			want = "list"
		}
		if kind := inputs[fmt.Sprint(r.Mark.Path[0])]; kind != want {
			return fmt.Errorf("its mark is put at %s, of kind %q", r.Mark, kind)
		}
	}
	if r.Invoke == nil {
		return nil
	}
	args, ok := functions[r.Invoke.Function]
	if !ok {
		return fmt.Errorf("there is no function %s", r.Invoke.Function)
	}
	for name := range r.Invoke.Args {
		if args[name] == "" {
			return fmt.Errorf("%s has no argument %s", r.Invoke.Function, name)
		}
	}
	return nil
}

func TestARuleThatDoesNotFitItsTypeIsNoticed(t *testing.T) {
	inputs := map[string]string{"name": "string", "tags": "map", "rules": "list"}
	functions := map[string]map[string]string{"a:b:f": {"tags": "map"}}
	for text, fit := range map[string]bool{
		`{"read": "${name}"}`:          true,
		`{"read": "${other}"}`:         false,
		`{"read": "${rules}"}`:         false,
		`{"read": "${rules[0].name}"}`: true,
		`{"invoke": {"function": "a:b:f", "args": {"tags": {"k": "${mark}"}}, "ids": "ids"}, "mark": "tags.k"}`:   true,
		`{"invoke": {"function": "a:b:g", "args": {"tags": {"k": "${mark}"}}, "ids": "ids"}, "mark": "tags.k"}`:   false,
		`{"invoke": {"function": "a:b:f", "args": {"tag": {"k": "${mark}"}}, "ids": "ids"}, "mark": "tags.k"}`:    false,
		`{"invoke": {"function": "a:b:f", "args": {"tags": {"k": "${mark}"}}, "ids": "ids"}, "mark": "rules.k"}`:  false,
		`{"invoke": {"function": "a:b:f", "args": {"tags": {"k": "${mark}"}}, "ids": "ids"}, "mark": "labels.k"}`: false,
	} {
		var r settlerule.Rule
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := fits(&r, inputs, functions); (err == nil) != fit {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTypesAreKnownByTheTokensOfTheirProviders(t *testing.T) {
	for token, want := range map[string]string{
		"aws:s3/bucket:Bucket":                   "${bucket}",
		"aws:cloudwatch/metricAlarm:MetricAlarm": "${name}", // alarm_name in Terraform
		"gcp:pubsub/topic:Topic":                 "projects/${value:project}/topics/${name}",
		"azure:network/virtualNetwork:VirtualNetwork": "/subscriptions/${value:subscription}/resourceGroups/" +
			"${resourceGroupName}/providers/Microsoft.Network/virtualNetworks/${name}",
		"azure-native:storage:BlobContainer": "/subscriptions/${value:subscription}/resourceGroups/" +
			"${resourceGroupName}/providers/Microsoft.Storage/storageAccounts/${accountName}/blobServices/default/" +
			"containers/${containerName}",
		"aws-native:apigateway:Deployment":         "",
		"kubernetes:apps/v1:Deployment":            "${metadata.namespace}/${metadata.name}",
		"kubernetes:example.com/v1:CustomResource": "${metadata.namespace}/${metadata.name}",
	} {
		set, ok, err := New().Rules(t.Context(), token, "", nil)
		if err != nil || ok != (want != "") || ok && set.Rules[0].Read.String() != want {
			t.Errorf("%s: %+v %v %v", token, set.Rules, ok, err)
		}
	}
	if set := rulesOf(t, "random:index/randomId:RandomId"); !set.Rules[0].Nothing {
		t.Errorf("%+v", set)
	}
	if _, ok, err := New().Rules(t.Context(), "nothing:index:Known", "", nil); ok || err != nil {
		t.Errorf("an unknown package: %v %v", ok, err)
	}
}

func TestARuleIsUsedWithTheVersionsThatItWasCheckedAgainst(t *testing.T) {
	for token, versions := range map[string]map[string]bool{
		"aws:s3/bucket:Bucket": {"5.43.0": false, "6.0.0": true, "7.48.0": true, "8.0.0": false},
		// the function that finds it has no argument for the region in version 6
		"aws:route53/zone:Zone": {"6.83.4": false, "7.0.0": true, "8.0.0": false},
	} {
		for version, applies := range versions {
			if r := rulesOf(t, token).Rules[0]; r.AppliesTo(version) != applies {
				t.Errorf("%s %s: %q", token, version, r.Versions)
			}
		}
	}
}

// asked counts how often a plugin is asked for its names.
type asked struct {
	answer string
	err    error
	times  int
}

func (a *asked) mapping(context.Context, string) ([]byte, error) {
	a.times++
	return []byte(a.answer), a.err
}

func TestABridgedPluginSaysHowItCallsTypesThatAreNotKnown(t *testing.T) {
	plugin := &asked{answer: `{"name": "aws", "provider": {"resources": {"aws_vpc": {"cidr_block": {"type": 4}}}},
		"resources": {"aws_s3_bucket": {"tok": "aws:index/s3Bucket:S3Bucket",
			"fields": {"bucket": {"name": "bucketName"}, "tags": {"elem": {}}}},
		"aws_kms_alias": {"tok": "aws:index/kmsAlias:KmsAlias"},
		"aws_eks_node_group": {"tok": "aws:index/eksNodeGroup:EksNodeGroup"},
		"aws_vpc": {"tok": "aws:index/vpc:Vpc"}, "aws_unknown": {"tok": "aws:index/unknown:Unknown"},
		"aws_broken": {"tok": 1}},
		"dataSources": {"aws_vpcs": {"tok": "aws:index/getVpcs:getVpcs"}}}`}
	c := New()
	for token, want := range map[string]string{
		"aws:index/s3Bucket:S3Bucket":         "${bucketName}",
		"aws:index/eksNodeGroup:EksNodeGroup": "${clusterName}:${nodeGroupName}",
		"aws:index/kmsAlias:KmsAlias":         "${name}",
	} {
		set, ok, err := c.Rules(t.Context(), token, "5.100.0", plugin.mapping)
		if err != nil || !ok || set.Rules[0].Read.String() != want || !set.Rules[0].AppliesTo("5.100.0") {
			t.Errorf("%s: %+v %v %v", token, set.Rules, ok, err)
		}
	}
	set, ok, err := c.Rules(t.Context(), "aws:index/vpc:Vpc", "5.100.0", plugin.mapping)
	if err != nil || !ok || set.Rules[0].Invoke.Function != "aws:index/getVpcs:getVpcs" {
		t.Errorf("%+v %v", set, err)
	}
	for _, token := range []string{"aws:index/unknown:Unknown", "aws:index/none:None", "aws:s3/bucket:Bucket",
		"aws:accessanalyzer/analyzer:Analyzer"} {
		if _, _, err := c.Rules(t.Context(), token, "5.100.0", plugin.mapping); err != nil {
			t.Errorf("%s: %v", token, err)
		}
	}
	if plugin.times != 1 {
		t.Errorf("it is asked %d times", plugin.times)
	}
	other := &asked{answer: `{"resources": {"aws_kms_alias": {"tok": "aws:index/mine:Mine"}}}`}
	if _, ok, _ := New().Rules(t.Context(), "aws:index/s3Bucket:S3Bucket", "5.100.0", other.mapping); ok {
		t.Error("what one plugin says holds for another")
	}
}

func TestTypesThatAreKnownToHaveNoRuleAskNoPlugin(t *testing.T) {
	plugin := &asked{}
	_, ok, err := New().Rules(t.Context(), "aws:sns/topicSubscription:TopicSubscription", "", plugin.mapping)
	if ok || err != nil || plugin.times > 0 {
		t.Errorf("%v %v, asked %d times", ok, err, plugin.times)
	}
}

func TestAPluginThatSaysNothingUsableHasNoNames(t *testing.T) {
	for name, plugin := range map[string]*asked{
		"an error":   {err: errors.New("unimplemented")},
		"nothing":    {},
		"no JSON":    {answer: `{"resources": {"aws_kms_alias": `},
		"a list":     {answer: `[1]`},
		"no objects": {answer: `{"resources": [], "dataSources": 4}`},
		"a long token": {answer: `{"resources": {"aws_kms_alias": {"tok": "aws:x/` + strings.Repeat("x", longestName) +
			`:Y"}}}`},
		"too much": {answer: `{"resources": {"aws_kms_alias": {"tok": "aws:x/y:Y"}}, "provider": "` +
			strings.Repeat("x", largestMapping) + `"}`},
	} {
		c := New()
		for range 2 {
			if _, ok, err := c.Rules(t.Context(), "aws:x/y:Y", "", plugin.mapping); ok || err != nil {
				t.Errorf("%s: %v %v", name, ok, err)
			}
		}
		if plugin.times != 1 {
			t.Errorf("%s: it is asked %d times", name, plugin.times)
		}
	}
}

func TestOfAPluginsNamesOnlyThoseThatRulesUseAreKept(t *testing.T) {
	f, err := packageFile("aws")
	if err != nil {
		t.Fatal(err)
	}
	var fields strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&fields, `"other%d": {"name": "x"}, `, i)
	}
	for at := range "name" { // parts of words of the rules
		for end := at + 1; end <= 3; end++ {
			fmt.Fprintf(&fields, `%q: {"name": "x"}, `, "name"[at:end])
		}
	}
	n := f.parseMapping([]byte(`{"resources": {"aws_kms_alias": {"tok": "aws:x/y:Y", "fields": {` + fields.String() +
		`"name": {"name": "aliasName"}}}}}`))
	if got := n.fields["aws_kms_alias"]; len(got) != 1 || got["name"] != "aliasName" {
		t.Errorf("%d are kept, and name is %q", len(got), got["name"])
	}
}

func TestAPluginThatDoesNotAnswerHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, answer := New(), make(chan struct{})
		silent := func(context.Context, string) ([]byte, error) {
			<-answer
			return []byte(`{"resources": {"aws_kms_alias": {"tok": "aws:x/y:Y"}}}`), nil
		}
		if _, ok, err := c.Rules(t.Context(), "aws:x/y:Y", "", silent); ok || err != nil {
			t.Errorf("without an answer: %v %v", ok, err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := c.Rules(gone, "aws:x/y:Y", "", silent); !errors.Is(err, context.Canceled) {
			t.Errorf("when the look is over: %v", err)
		}
		close(answer)
		if _, ok, err := c.Rules(t.Context(), "aws:x/y:Y", "", silent); !ok || err != nil {
			t.Errorf("after its late answer: %v %v", ok, err)
		}
	})
}
