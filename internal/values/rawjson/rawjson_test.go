package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestTheMembersAndElementsOfATextAreItsParts(t *testing.T) {
	const text = " {\"a\" : [1 , {\"b\":\"]}\\\"\"} ,null], \"\\u0061\":{} ,\"c\":-1.5e3\n}"
	var names, values []string
	for name, value := range Members([]byte(text)) {
		names, values = append(names, name), append(values, string(value))
	}
	if !reflect.DeepEqual(names, []string{"a", "a", "c"}) ||
		!reflect.DeepEqual(values, []string{`[1 , {"b":"]}\""} ,null]`, "{}", "-1.5e3"}) {
		t.Errorf("it has %q with %q", names, values)
	}
	values = nil
	for value := range Elements([]byte(values0(text))) {
		values = append(values, string(value))
	}
	if !reflect.DeepEqual(values, []string{"1", `{"b":"]}\""}`, "null"}) {
		t.Errorf("its elements are %q", values)
	}
	for _, empty := range []string{"", "{}", "[]", " { } ", " [ ]", "null", "1", `"[1]"`} {
		for name := range Members([]byte(empty)) {
			t.Errorf("%s has the member %q", empty, name)
		}
		for value := range Elements([]byte(empty)) {
			t.Errorf("%s has the element %s", empty, value)
		}
	}
	if string(Member([]byte(text), "a")) != "{}" || Member([]byte(text), "x") != nil {
		t.Error("a member is not the last one of its name")
	}
}

// values0 is the first member of an object.
func values0(text string) string {
	for _, value := range Members([]byte(text)) {
		return string(value)
	}
	return ""
}

// TestWhatATextCostsInMemory measures what encoding/json makes of the texts that become largest.
func TestWhatATextCostsInMemory(t *testing.T) {
	type wide struct { // as wide as the types that clients' texts become
		_ [40]*int
	}
	for name, c := range map[string]struct {
		into  func() any
		piece string
	}{
		"empty objects":            {func() any { return new(any) }, `{}`},
		"objects of one value":     {func() any { return new(any) }, `{"":0}`},
		"objects of two":           {func() any { return new(any) }, `{"":"","a":[]}`},
		"numbers":                  {func() any { return new(any) }, `0`},
		"empty arrays":             {func() any { return new(any) }, `[]`},
		"empty texts":              {func() any { return new(any) }, `""`},
		"deep arrays":              {func() any { return new(any) }, `[[[[[[]]]]]]`},
		"objects that are structs": {func() any { return new([]wide) }, `{}`},
		"numbers that are raw":     {func() any { return new([]json.RawMessage) }, `0`},
		"texts that are bytes":     {func() any { return new([][]byte) }, `""`},
	} {
		text := []byte("[" + strings.Repeat(c.piece+",", 20_000) + c.piece + "]")
		into := c.into()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		took, cost := int64(after.HeapAlloc-before.HeapAlloc), Cost(text)
		runtime.KeepAlive(into)
		t.Logf("%s: %d bytes of text take %d, %d times as much, and cost %d", name, len(text), took,
			took/int64(len(text)), cost)
		if took > cost {
			t.Errorf("%s: %d bytes of text take %d, and cost %d", name, len(text), took, cost)
		}
	}
}

func FuzzTexts(f *testing.F) {
	for _, text := range []string{`{"a":[1,"\"]",{}],"b":null}`, `[ ]`, `"\\"`, `[[],{"":""}]`, `{"a":1,"a":2}`, `{`, `[1,`, ``} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		Cost(text)
		var count int
		for range Elements(text) {
			count++
		}
		for range Members(text) {
			count++
		}
		if count > len(text) {
			t.Errorf("%q has %d parts", text, count)
		}
		if !json.Valid(text) {
			return
		}
		var elements []json.RawMessage
		if json.Unmarshal(text, &elements) == nil {
			n := 0
			for raw := range Elements(text) {
				if n >= len(elements) || !bytes.Equal(raw, elements[n]) {
					t.Fatalf("element %d of %s is %s", n, text, raw)
				}
				n++
			}
			if n != len(elements) {
				t.Errorf("%s has %d elements", text, n)
			}
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) == nil {
			got := map[string]json.RawMessage{}
			for name, raw := range Members(text) {
				got[name] = raw
			}
			for name, raw := range members {
				if !bytes.Equal(got[name], raw) {
					t.Errorf("the member %q of %s is %s", name, text, got[name])
				}
			}
		}
	})
}

func TestAMemberIsAddedToAnObjectInParts(t *testing.T) {
	for want, c := range map[string]struct {
		object any
		value  [][]byte
	}{
		`{"a":1,"large":{"b":2}}`: {map[string]int{"a": 1}, [][]byte{[]byte(`{"b"`), []byte(`:2}`)}},
		`{"large":null}`:          {struct{}{}, [][]byte{[]byte("null")}},
		`{"a":2}`:                 {map[string]int{"a": 2}, nil},
		`{"a":3}`:                 {map[string]int{"a": 3}, [][]byte{nil}},
	} {
		parts, err := With(c.object, "large", c.value...)
		if got := string(bytes.Join(parts, nil)); err != nil || got != want {
			t.Errorf("it is %s, not %s: %v", got, want, err)
		}
	}
}
