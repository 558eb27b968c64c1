package http

import (
	"net/http"

	"github.com/deployctl/deployctl/internal/values/redaction"
)

// Over is the resource type over a transport.
func Over(transport http.RoundTripper) *Resource {
	return &Resource{&connection{opened: &opened{client: &http.Client{Transport: transport, CheckRedirect: sameServer},
		endpoint: "http://api.example.com", redactor: redaction.New(nil)}}}
}

// GivenTo is a struct as an input.
func GivenTo[T any](v T) Given[T] { return Given[T]{&v} }
