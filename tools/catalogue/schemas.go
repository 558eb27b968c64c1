package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
)

// schema is what the tests of the catalogue know about a type or a function: the kinds of its inputs.
type schema = map[string]string

// writeSchemas records of each type that has a rule, and of each function that a rule calls, which inputs it has: the
// whole schemas are too large for a test.
func writeSchemas(path string, files []*file) error {
	recorded := map[string]map[string]schema{}
	for _, f := range files {
		if f.sdk == nil {
			continue
		}
		of := map[string]schema{}
		for key, e := range f.Types {
			token := key
			if e.Token != "" {
				token = e.Token
			}
			of[token] = kinds(f.sdk.Resources[token])
		}
		for _, token := range f.Functions {
			if called := f.sdk.Functions[token]; called != nil {
				of[token] = kinds(called)
			}
		}
		recorded[f.Package] = of
	}
	text, err := json.MarshalIndent(recorded, "", " ")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// kinds returns the inputs that a rule can use, and where marks are put.
func kinds(r *resource) schema {
	s := schema{}
	for name, in := range r.Inputs {
		if !in.Secret && (scalar(in.Kind) || in.Kind == "map" || in.Kind == "list") {
			s[name] = in.Kind
		}
	}
	return s
}
