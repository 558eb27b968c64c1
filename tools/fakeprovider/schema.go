package fakeprovider

import (
	"encoding/json"

	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

// packageSchema is the package's schema as JSON.
func packageSchema(version string) (string, error) {
	config := map[string]schema.PropertySpec{
		"endpoint": {TypeSpec: schema.TypeSpec{Type: "string"}, Description: "URL of the cloud; FAKECLOUD_ENDPOINT " +
			"when not given."},
		"token": {TypeSpec: schema.TypeSpec{Type: "string"}, Secret: true,
			Description: "Bearer token for the cloud."},
		"errors": {TypeSpec: schema.TypeSpec{Type: "string"}, Description: "The manner in which errors are reported, all " +
			"with the code Unknown: bridged, google, kubernetes or native. By default, their codes say what they mean."},
		"habits": {TypeSpec: schema.TypeSpec{Type: "boolean"}, Description: "Behave in other ways, too, as providers do " +
			"that people use: no List, no state of what failed to initialise, a record of their own among the outputs, " +
			"JSON in another order. The manner of errors is bridged when not given."},
		"account": {TypeSpec: schema.TypeSpec{Type: "string"}, Description: "Whose things these are; a change " +
			"replaces the provider."},
	}
	spec := schema.PackageSpec{
		Name:        "fake",
		Version:     version,
		Description: "The fake cloud's resources, for tests.",
		Config:      schema.ConfigSpec{Variables: config},
		Provider:    &schema.ResourceSpec{InputProperties: config},
		Resources:   map[string]schema.ResourceSpec{"fake:index:Group": groupSchema()},
		Functions:   functionSchemas(),
	}
	for token, k := range kinds {
		spec.Resources[string(token)] = k.schema()
	}
	b, err := json.Marshal(spec)
	return string(b), err
}

func (k kind) schema() schema.ResourceSpec {
	r := schema.ResourceSpec{InputProperties: map[string]schema.PropertySpec{}}
	r.Description, r.Properties = k.about, map[string]schema.PropertySpec{}
	for _, p := range k.inputs() {
		r.InputProperties[p.name] = p.schema()
		out := p.schema()
		out.Default, out.WillReplaceOnChanges = nil, false
		r.Properties[p.name] = out
		if p.fallback != nil || p.name == "name" {
			r.Required = append(r.Required, p.name)
		}
	}
	for _, p := range computed {
		r.Properties[p.name] = p.schema()
		if p.name != "blob" {
			r.Required = append(r.Required, p.name)
		}
	}
	if k.naming == named {
		r.RequiredInputs = []string{"name"}
	}
	return r
}

func (p declaration) schema() schema.PropertySpec {
	s := schema.PropertySpec{
		TypeSpec: schema.TypeSpec{Type: p.typ}, Description: p.about, Secret: p.secret,
		WillReplaceOnChanges: p.replaces,
	}
	switch p.typ {
	case "array":
		s.Items = &schema.TypeSpec{Type: p.items}
	case "object":
		s.AdditionalProperties = &schema.TypeSpec{Ref: p.items}
	}
	return s
}

func groupSchema() schema.ResourceSpec {
	str := schema.TypeSpec{Type: "string"}
	in := map[string]schema.PropertySpec{
		"prefix": {TypeSpec: str, Description: "The name of the Named child, and the stem of both children's own " +
			"names."},
		"size": {TypeSpec: schema.TypeSpec{Type: "integer"}, Description: "Given to both children."},
	}
	r := schema.ResourceSpec{IsComponent: true, InputProperties: in, RequiredInputs: []string{"prefix"}}
	r.Description = "A component of one Named and one Auto."
	r.Properties = map[string]schema.PropertySpec{
		"namedArn": {TypeSpec: str},
		"autoName": {TypeSpec: str},
	}
	r.Required = []string{"namedArn", "autoName"}
	return r
}

func functionSchemas() map[string]schema.FunctionSpec {
	str := func(about string) schema.PropertySpec {
		return schema.PropertySpec{TypeSpec: schema.TypeSpec{Type: "string"}, Description: about}
	}
	object := func(props map[string]schema.PropertySpec, required ...string) *schema.ObjectTypeSpec {
		return &schema.ObjectTypeSpec{Type: "object", Properties: props, Required: required}
	}
	ids := schema.PropertySpec{TypeSpec: schema.TypeSpec{Type: "array", Items: &schema.TypeSpec{Type: "string"}}}
	return map[string]schema.FunctionSpec{
		"fake:index:lookup": {
			Description: "Looks a thing up by its name; not finding it is a failure of name.",
			Inputs: object(map[string]schema.PropertySpec{"kind": str("Kind in the cloud; named when not given."),
				"name": str("")}, "name"),
			Outputs: object(map[string]schema.PropertySpec{
				"id": str(""), "arn": str(""), "size": {TypeSpec: schema.TypeSpec{Type: "integer"}}, "zone": str("")},
				"id", "arn"),
		},
		"fake:index:find": {
			Description: "Finds the ids of the things of a kind that carry a URN as their tag.",
			Inputs: object(map[string]schema.PropertySpec{"kind": str("Kind in the cloud; tagged when not given."),
				"urn": str("")}, "urn"),
			Outputs: object(map[string]schema.PropertySpec{"ids": ids}, "ids"),
		},
		"fake:index:search": {
			Description: "Finds the ARNs of the things of a kind whose settings have a mark.",
			Inputs: object(map[string]schema.PropertySpec{"kind": str("Kind in the cloud; filed when not given."),
				"mark": str("")}, "mark"),
			Outputs: object(map[string]schema.PropertySpec{"things": {TypeSpec: schema.TypeSpec{Type: "array",
				Items: &schema.TypeSpec{Type: "object", AdditionalProperties: &schema.TypeSpec{Type: "string"}}}}}, "things"),
		},
	}
}
