package deployments

import (
	"reflect"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/filltest"
)

// TestEveryFieldOfARequestCounts makes each text of a request too large, whatever it is in.
func TestEveryFieldOfARequestCounts(t *testing.T) {
	r := filltest.Of[UpdateRequest](t)
	if err := r.validateSize(); err != nil {
		t.Fatal(err)
	}
	texts := 0
	eachText(reflect.ValueOf(&r).Elem(), "request", func(path string, set func(string)) {
		texts++
		set(strings.Repeat("x", MaxRequestSize))
		if err := r.validateSize(); CodeOf(err) != CodeInvalid {
			t.Errorf("%s of %d MiB is answered %v", path, MaxRequestSize>>20, err)
		}
		set("x")
		if err := r.validateSize(); err != nil {
			t.Errorf("%s is not as it was: %v", path, err)
		}
	})
	if texts < 40 {
		t.Errorf("a request has %d texts", texts)
	}
}

// eachText calls try for each text within a value that filltest has filled.
func eachText(v reflect.Value, path string, try func(path string, set func(string))) {
	switch v.Kind() {
	case reflect.String:
		try(path, v.SetString)
	case reflect.Pointer:
		eachText(v.Elem(), path, try)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			try(path, func(text string) { v.SetBytes([]byte(text)) })
			return
		}
		eachText(v.Index(0), path, try)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				eachText(v.Field(i), path+"."+field.Name, try)
			}
		}
	case reflect.Map:
		for _, part := range []string{"key", "value"} {
			entry := v.MapRange()
			entry.Next()
			pair := map[string]reflect.Value{"key": reflect.New(v.Type().Key()).Elem(),
				"value": reflect.New(v.Type().Elem()).Elem()}
			pair["key"].Set(entry.Key())
			pair["value"].Set(entry.Value())
			eachText(pair[part], path+" "+part, func(path string, set func(string)) {
				try(path, func(text string) {
					set(text)
					v.Clear()
					v.SetMapIndex(pair["key"], pair["value"])
				})
			})
		}
	}
}

func TestWhereARequestWasMadeIsSaidInBounds(t *testing.T) {
	asked := func(key, text string) error {
		return UpdateRequest{Stack: StackName{"acme", "shop", "dev"}, RequestID: "a", Kind: "up",
			Lease: &Lease{Metadata: map[string]string{key: text}}}.Validate()
	}
	for name, err := range map[string]error{
		"what the CLI says": asked("git.author", "Ann\n"), "the longest name": asked(strings.Repeat("a", 256), ""),
		"the longest text": asked("a", strings.Repeat("a", 8<<10)),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := make(map[string]string)
	for i := range 501 {
		many[strings.Repeat("a", i)] = ""
	}
	for name, err := range map[string]error{
		"a name that controls a terminal": asked("\x1b[2J", ""), "a text that does": asked("a", "\x1b[2J"),
		"a name that is too long": asked(strings.Repeat("a", 257), ""),
		"a text that is":          asked("a", strings.Repeat("a", 8<<10+1)),
		"too many": UpdateRequest{Stack: StackName{"acme", "shop", "dev"}, RequestID: "a", Kind: "up",
			Lease: &Lease{Metadata: many}}.Validate(),
	} {
		if CodeOf(err) != CodeInvalid {
			t.Errorf("%s is answered %v", name, err)
		}
	}
}

func TestARequestThatIsTooLargeNamesWhatIsLarge(t *testing.T) {
	large := strings.Repeat("x", MaxRequestSize)
	for want, r := range map[string]UpdateRequest{
		`its configuration (1536 KiB the value of "shop:blob"); put large values into files`: {
			Config: map[string]ConfigValue{"shop:size": {Value: "3"}, "shop:blob": {Value: large}}},
		"its environment; unset variables":          {Environment: []string{"A=" + large}},
		"its resources to import; import them in":   {Imports: []Import{{ID: large}}},
		"its targets and other names of resources;": {Targets: []string{large}},
		"its description of where it was made;":     {Lease: &Lease{Metadata: map[string]string{"git": large}}},
		"its message; shorten it":                   {Lease: &Lease{}, Message: large},
	} {
		if err := r.validateSize(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}
