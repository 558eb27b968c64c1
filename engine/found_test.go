package engine

import "testing"

func TestWhatWasFoundIsReadAsItIsTold(t *testing.T) {
	const u = "urn:pulumi:dev::proj::a:b:C::n"
	for _, f := range []Found{
		{ID: "x-1"}, {ID: "a, and is taken over: b", Foreign: false}, {ID: "x", Foreign: true},
		{ID: "x", Foreign: true, Owner: "stack web/prod"},
	} {
		if got, ok := ParseFound(u, u+f.told()); !ok || got != f {
			t.Errorf("%q is read as %+v, %v", f.told(), got, ok)
		}
	}
	for _, text := range []string{"", u, u + existsAlready, "other" + existsAlready + recovered + "x"} {
		if f, ok := ParseFound(u, text); ok {
			t.Errorf("%q is read as %+v", text, f)
		}
	}
}
