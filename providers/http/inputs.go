package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// ResourceIn declares a resource of a REST API.
type ResourceIn struct {
	Endpoint   string            `pulumi:"endpoint,optional" doc:"The base URL of the API, such as https://api.example.com/v1; without it deployctl:httpEndpoint with deployctl:httpHeaders, which an endpoint of its own does not get."`
	Headers    map[string]string `pulumi:"headers,optional" doc:"Headers of all requests, in addition to those configured."`
	Name       string            `pulumi:"name,autoname,replace" doc:"The value of {name}, and the ID unless there is an idPath; without it, the resource's name and a random suffix."`
	Properties any               `pulumi:"properties,optional" doc:"What the resource shall be: any JSON. Only what is declared is compared with what the server has."`
	Create     Given[Request]    `pulumi:"create" doc:"The request that creates it: method (default POST), path, headers, and body (default {properties})."`
	Read       Given[Request]    `pulumi:"read" doc:"The request that reads it, a GET: path, headers."`
	Update     Given[Request]    `pulumi:"update,optional" doc:"The request that changes it: method (default PATCH), path, headers, and body (default {changes} of a PATCH, otherwise {properties}). Without it, a change of properties replaces."`
	Delete     Given[Request]    `pulumi:"delete,optional" doc:"The request that deletes it: method (default DELETE), path, headers, body. Without it, what exists is left."`
	Lookup     Given[Lookup]     `pulumi:"lookup,optional" doc:"How a resource is found whose ID is not known, a GET: path, headers, items (the path to the list in the answer), match (values by their paths in an item; without it, the mark), next (the path to the URL of the next page; without it, the header Link). Required with idPath."`
	IDPath     string            `pulumi:"idPath,optional" doc:"Where the resource has the ID that the server assigns, such as id. Without it, the ID is the name, and create and read use {name} or {id}."`
	Envelope   string            `pulumi:"envelope,optional" doc:"Where in an answer the resource is, such as data; without it, it is the answer."`
	Mark       string            `pulumi:"mark,optional" doc:"Where the resource can keep a text of 32 characters that says whose it is, such as labels.owner."`
	WriteOnly  []string          `pulumi:"writeOnly,optional" doc:"Paths of properties that the server does not tell, such as password."`
	Outputs    map[string]string `pulumi:"outputs,optional" doc:"What becomes an output: names, and paths in the resource."`
	WaitUntil  Given[Wait]       `pulumi:"waitUntil,optional" doc:"When it is ready: the value at path is equals, or one of oneOf, within so many seconds (default 300)."`
	Expect     Given[Expect]     `pulumi:"expect,optional" doc:"Status codes, where they are others: success (default 200 to 299), gone (404 and 410), exists (409 and 412 of a create)."`
}

// ResourceOut describes a resource that exists.
type ResourceOut struct {
	Name   string         `pulumi:"name" doc:"The name."`
	Result map[string]any `pulumi:"result,inherit" doc:"The values of outputs, by their names. They are secret if any input is."`
	Owner  string         `pulumi:"owner" doc:"The mark by which it is known to be this resource's."`
}

// Request is a request and its templates.
type Request struct {
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    any               `json:"body,omitempty"`
}

// Lookup is a request for a list, and which of it is meant.
type Lookup struct {
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Items   string            `json:"items,omitempty"`
	Match   map[string]any    `json:"match,omitempty"`
	Next    string            `json:"next,omitempty"`
}

// Wait is what a resource that is ready has at a path.
type Wait struct {
	Path   string `json:"path"`
	Equals any    `json:"equals,omitempty"`
	OneOf  []any  `json:"oneOf,omitempty"`
	Within int    `json:"within,omitempty"` // seconds
}

// Expect are status codes.
type Expect struct {
	Success []int `json:"success,omitempty"`
	Gone    []int `json:"gone,omitempty"`
	Exists  []int `json:"exists,omitempty"`
}

// Given is a struct as its json tags say, which may be left out, and takes no property besides.
type Given[T any] struct{ V *T }

// PropertySchema is that of an object.
func (g *Given[T]) PropertySchema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"$ref": "pulumi.json#/Any"}}
}

// MarshalProperty is the form in which it was given.
func (g *Given[T]) MarshalProperty() (resource.PropertyValue, error) {
	var value any
	data, err := json.Marshal(g.V)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	return resource.NewPropertyValue(value), err
}

// UnmarshalProperty refuses what T has no field for.
func (g *Given[T]) UnmarshalProperty(v resource.PropertyValue) error {
	data, err := json.Marshal(v.Mappable())
	if err != nil {
		return errors.New("must be JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	g.V = new(T)
	var wrong *json.UnmarshalTypeError
	switch err := decoder.Decode(g.V); {
	case errors.As(err, &wrong) && wrong.Field != "":
		return errors.New("has a " + wrong.Field + " that is a " + wrong.Value)
	case errors.As(err, &wrong):
		return errors.New("must be an object, not a " + wrong.Value)
	case err != nil:
		return errors.New("has an " + strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
