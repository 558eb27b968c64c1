package settlerule

import (
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Scope has the values of variables.
type Scope struct {
	Inputs resource.PropertyMap
	Config resource.PropertyMap
	Mark   string // empty: the stack has no marks
	// Values returns a value of the package. It is asked only for what is needed; a MissingError says that there is none.
	Values func(name string) (string, error)
}

// resolve returns the value of a variable, or its default. Its errors are MissingErrors, and those of Values.
func (s Scope) resolve(v Variable) (resource.PropertyValue, error) {
	found, err := s.value(v)
	var missing *MissingError
	// A secret is not the same as nothing: with the default, another resource would be found.
	if v.Default != nil && errors.As(err, &missing) && !missing.Secret() {
		return resource.NewProperty(*v.Default), nil
	}
	if v.Default != nil && err == nil && found.IsString() && found.StringValue() == "" {
		return resource.NewProperty(*v.Default), nil
	}
	return found, err
}

func (s Scope) value(v Variable) (found resource.PropertyValue, err error) {
	switch v.Origin {
	case Input:
		found, err = get(resource.NewProperty(s.Inputs), v.Path)
	case Config:
		found, err = get(resource.NewProperty(s.Config), v.Path)
	case Value:
		if s.Values == nil {
			return found, &MissingError{v, string(noValue)}
		}
		text, err := s.Values(v.Name)
		if err == nil && text == "" {
			err = &MissingError{v, string(noValue)}
		}
		return resource.NewProperty(text), err
	case Marked:
		if s.Mark == "" {
			return found, &MissingError{v, "needs the stack's deployctl:mark, set before the resource is created"}
		}
		return resource.NewProperty(s.Mark), nil
	default:
		err = fmt.Errorf("is of no origin")
	}
	if err != nil {
		err = &MissingError{v, err.Error()}
	}
	return found, err
}
