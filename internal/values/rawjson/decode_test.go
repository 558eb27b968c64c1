package rawjson_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/deployctl/deployctl/internal/values/rawjson"
)

func TestAWrongTypeIsToldInTheWordsOfTheText(t *testing.T) {
	type inner struct {
		Custom bool
		Count  uint
		Parts  []string `json:"parts"`
		Data   []byte   `json:"data"`
	}
	type outer struct {
		Deployment inner `json:"deployment"`
	}
	for text, want := range map[string]string{
		`[]`:                              "it must be an object, and is a list",
		`{"deployment":"x"}`:              "deployment must be an object, and is a string",
		`{"deployment":{"custom":"yes"}}`: "deployment.Custom must be true or false, and is a string",
		`{"deployment":{"count":-1}}`: "deployment.Count must be a whole number that is not negative, and is the number " +
			"-1",
		`{"deployment":{"parts":{}}}`: "deployment.parts must be a list, and is an object",
		`{"deployment":{"data":7}}`:   "deployment.data must be a string (base64), and is a number",
	} {
		var v outer
		err := rawjson.Unmarshal([]byte(text), &v)
		var kept *json.UnmarshalTypeError
		if err == nil || err.Error() != want || !errors.As(err, &kept) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := rawjson.Unmarshal([]byte(`{}`), &outer{}); err != nil {
		t.Error(err)
	}
}
