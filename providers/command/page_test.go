package command

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestThePageOfRunHasEveryProperty(t *testing.T) {
	page, err := os.ReadFile("../../docs/command-run.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[RunIn](), reflect.TypeFor[RunOut]()} {
		for field := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(field).Tag.Get("pulumi"), ",")
			if !strings.Contains(string(page), "| `"+name+"`") && !strings.Contains(string(page), ", `"+name+"` |") {
				t.Errorf("the page lacks %s", name)
			}
		}
	}
}
