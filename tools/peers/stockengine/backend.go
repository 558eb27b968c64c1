package main

import (
	"context"
	"errors"

	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// noBackend knows no other stacks.
type noBackend struct{}

var errNoBackend = errors.New("there are no other stacks here")

func (noBackend) GetStackOutputs(context.Context, string, func(error) error) (property.Map, error) {
	return property.Map{}, errNoBackend
}

func (noBackend) GetStackResourceOutputs(context.Context, string) (property.Map, error) {
	return property.Map{}, errNoBackend
}
