package providers_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers"
)

var update = flag.Bool("update", false, "rewrite the reference in docs/resources.md")

const (
	document   = "../docs/resources.md"
	beginning  = "## Reference\n"
	docColumns = 130
)

// examples are parts of one YAML program, by type. An end-to-end test runs them as they stand in the page, but for
// those that are a program of their own, because they need a server that the test does not have.
var examples = map[string]string{
	"deployctl:s3:Bucket": `
  site:
    type: deployctl:s3:Bucket
    properties:
      publicRead: true
      tags: {team: web}`,
	"deployctl:s3:Directory": `
  pages:
    type: deployctl:s3:Directory
    properties:
      source: ./www
      bucket: ${site.name}
      index: files.html`,
	"deployctl:s3:Object": `
  robots:
    type: deployctl:s3:Object
    properties:
      bucket: ${site.name}
      key: robots.txt
      content: "User-agent: *"`,
	"deployctl:index:Binding": `
  label:
    type: deployctl:index:Binding
    properties:
      resource: ${site.urn}
      inputs: {tags: {team: web, robots: "${robots.key}"}}`,
	"deployctl:http:Resource": `name: team
runtime: yaml
config:
  deployctl:httpEndpoint: {value: "https://api.example.com/v1"}
resources:
  ann:
    type: deployctl:http:Resource
    properties:
      properties: {login: ann, role: editor}
      create: {path: "/users"}
      read: {path: "/users/{id}"}
      update: {path: "/users/{id}"}
      delete: {path: "/users/{id}"}
      idPath: id
      lookup: {path: "/users?login={properties.login}", match: {login: "{properties.login}"}}
      outputs: {avatar: profile.avatarUrl}
outputs:
  avatar: ${ann.result["avatar"]}`,
	"deployctl:postgres:Database": `name: shop
runtime: yaml
resources:
  shop:
    type: deployctl:postgres:Database
    properties: {owner: shop_owner, encoding: UTF8, locale: C.UTF-8, comment: what the shop sells}
    options: {protect: true}
outputs:
  database: ${shop.name}`,
	"deployctl:postgres:Role": `name: app
runtime: yaml
config:
  password: {type: string, secret: true}
resources:
  app:
    type: deployctl:postgres:Role
    properties: {name: app, login: true, password: "${password}", memberOf: [readers]}`,
	"deployctl:postgres:Schema": `name: sales
runtime: yaml
resources:
  sales:
    type: deployctl:postgres:Schema
    properties: {name: sales, database: shop, owner: shop_owner}`,
	"deployctl:postgres:Extension": `name: crypto
runtime: yaml
resources:
  crypto:
    type: deployctl:postgres:Extension
    properties: {name: pgcrypto, database: shop, schema: sales}`,
	"deployctl:postgres:Grant": `name: reads
runtime: yaml
resources:
  reads:
    type: deployctl:postgres:Grant
    properties: {role: app, on: table, database: shop, schema: sales, object: orders, privileges: [SELECT]}`,
	"deployctl:temporal:Namespace": `name: orders
runtime: yaml
config:
  deployctl:temporalAddress: {value: "temporal.internal:7233"}
resources:
  orders:
    type: deployctl:temporal:Namespace
    properties: {retention: 30d, description: Orders and their payments, data: {team: shop}}`,
	"deployctl:temporal:SearchAttribute": `name: orders
runtime: yaml
config:
  deployctl:temporalAddress: {value: "temporal.internal:7233"}
resources:
  customer:
    type: deployctl:temporal:SearchAttribute
    properties: {namespace: orders, name: Customer, type: Keyword}`,
	"deployctl:temporal:Schedule": `name: orders
runtime: yaml
config:
  deployctl:temporalAddress: {value: "temporal.internal:7233"}
resources:
  report:
    type: deployctl:temporal:Schedule
    properties:
      namespace: orders
      cron: ["0 3 * * MON-FRI"]
      timezone: Europe/Berlin
      workflowType: DailyReport
      taskQueue: reports
      input: [{region: north}]`,
	"deployctl:temporal:NexusEndpoint": `name: orders
runtime: yaml
config:
  deployctl:temporalAddress: {value: "temporal.internal:7233"}
resources:
  payments:
    type: deployctl:temporal:NexusEndpoint
    properties: {targetNamespace: orders, taskQueue: payments}`,
	"deployctl:command:Run": `
  orders:
    type: deployctl:command:Run
    properties:
      create: echo "created $TABLE"
      delete: echo "dropped $TABLE"
      environment: {TABLE: orders}`,
}

// settling says how the outcome of a lost create of a type is found out.
var settling = map[provider.Settle]string{
	provider.SettleByReconcile: "The type is convergent: a create whose answer was lost is repeated, and makes no " +
		"second resource.",
	provider.SettleByRead: "The type is not convergent: the outcome of a create whose answer was lost is found out " +
		"by [its read command](command-run.md#when-read-counts), or by a person.",
	"": "A component: its resources have their own rules.",
}

// packageSchema is the part of a Pulumi schema that the page shows.
type packageSchema struct {
	Config    struct{ Variables map[string]property }
	Resources map[string]struct {
		Description     string
		InputProperties map[string]property
		RequiredInputs  []string
		Properties      map[string]property
		Required        []string
	}
}

type property struct {
	Description          string
	Type                 string
	Ref                  string `json:"$ref"`
	Items                *property
	AdditionalProperties *property
	OneOf                []property
	Default              any
	Secret               bool
	WillReplaceOnChanges bool
}

// TestThePageOfResourcesIsTheSchema compares the generated part of docs/resources.md with the schema of the package.
func TestThePageOfResourcesIsTheSchema(t *testing.T) {
	page, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, found, ok := strings.Cut(string(page), beginning)
	if !ok {
		t.Fatalf("%s has no %q", document, beginning)
	}
	want := reference(t)
	switch {
	case *update:
		if err := os.WriteFile(document, []byte(before+beginning+want), 0o644); err != nil {
			t.Fatal(err)
		}
	case found != want:
		t.Errorf("%s is out of date: rewrite it with go test ./providers -run PageOfResources -update", document)
	}
}

func reference(t *testing.T) string {
	p := providers.Package(providers.Defaults{})
	text, err := p.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema packageSchema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n### Configuration\n\n| key | type | meaning |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(schema.Config.Variables)) {
		v := schema.Config.Variables[name]
		fmt.Fprintf(&b, "| `deployctl:%s` | %s | %s |\n", name, v.kind(), v.Description)
	}
	for _, token := range slices.Sorted(maps.Keys(schema.Resources)) {
		r := schema.Resources[token]
		if examples[token] == "" {
			t.Errorf("%s has no example", token)
		}
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", token, folded(r.Description+" "+settling[p.Settlements()[token]]))
		fmt.Fprintf(&b, "\n```yaml\n%s\n```\n", program(examples[token]))
		b.WriteString("\n| input | type | | meaning |\n|---|---|---|---|\n")
		for _, name := range requiredFirst(r.InputProperties, r.RequiredInputs) {
			v := r.InputProperties[name]
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, v.kind(),
				v.notes(slices.Contains(r.RequiredInputs, name)), v.Description)
		}
		b.WriteString("\n| output | type | meaning |\n|---|---|---|\n")
		for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
			v := r.Properties[name]
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, v.kind(), v.Description)
		}
	}
	return b.String()
}

// program is an example as the page shows it.
func program(example string) string {
	if strings.HasPrefix(example, "\n") {
		return "resources:" + example
	}
	return example
}

func requiredFirst(properties map[string]property, required []string) []string {
	names := slices.Sorted(maps.Keys(properties))
	slices.SortStableFunc(names, func(a, b string) int {
		switch first, second := slices.Contains(required, a), slices.Contains(required, b); {
		case first == second:
			return 0
		case first:
			return -1
		}
		return 1
	})
	return names
}

// kind is the type of a property, for people.
func (p property) kind() string {
	switch {
	case len(p.OneOf) > 0:
		var kinds []string
		for _, one := range p.OneOf {
			kinds = append(kinds, one.kind())
		}
		return strings.Join(kinds, " or ")
	case p.Ref != "":
		return strings.ToLower(p.Ref[strings.LastIndexByte(p.Ref, '/')+1:])
	case p.Items != nil:
		return "list of " + p.Items.kind()
	case p.AdditionalProperties != nil:
		return "map of " + p.AdditionalProperties.kind()
	}
	return p.Type
}

// notes say what a program has to know about an input besides its meaning.
func (p property) notes(required bool) string {
	var notes []string
	if required {
		notes = append(notes, "required")
	}
	if p.Default != nil {
		notes = append(notes, fmt.Sprintf("default %v", p.Default))
	}
	if p.Secret {
		notes = append(notes, "secret")
	}
	if p.WillReplaceOnChanges {
		notes = append(notes, "a change replaces")
	}
	return strings.Join(notes, ", ")
}

// folded breaks a text into lines of docs.
func folded(text string) string {
	return display.Fold(text, &display.Screen{Size: func() (int, int) { return docColumns + 1, 0 }})
}
