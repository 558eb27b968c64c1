package main

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// major returns the major version of a package.
func (s *sdk) major() int {
	first, _, _ := strings.Cut(s.Version, ".")
	n, _ := strconv.Atoi(first) // others count as 0
	return n
}

// versions is the range from a major version to the package's.
func (s *sdk) versions(from int) string { return fmt.Sprintf(">=%d.0.0 <%d.0.0", from, s.major()+1) }

// extend lets rules apply to an older version, too, if that has the same ones.
func (f *file) extend(older *file) {
	before := f.Versions
	f.Versions, f.oldest = f.sdk.versions(older.sdk.major()), older.sdk.major()
	f.Checked = older.sdk.Version + ", " + f.Checked
	for key, e := range f.Types {
		if same(e, older.Types[key]) && older.sdk.Resources[e.token(key)] != nil {
			continue
		}
		e.Rules = slices.Clone(e.Rules)
		for i := range e.Rules {
			if e.Rules[i].Versions == "" {
				e.Rules[i].Versions = before
			}
		}
		f.Types[key] = e
	}
}

// token returns the token of an entry with a key.
func (e entry) token(key string) string {
	if e.Token != "" {
		return e.Token
	}
	return key
}

// same reports whether two versions have the same rules of a type, whatever their sources.
func same(a, b entry) bool {
	bare := func(e entry) entry {
		e.Rules = slices.Clone(e.Rules)
		for i := range e.Rules {
			e.Rules[i].Confidence, e.Rules[i].Source, e.Rules[i].Versions = "", "", ""
		}
		return e
	}
	return reflect.DeepEqual(bare(a), bare(b))
}
