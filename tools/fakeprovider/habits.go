package fakeprovider

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// Habits are what nearly all providers that people use do beside their manner of reporting errors: they know of no
// List, drop the state of what failed to initialise, keep a record of their own among the outputs, write JSON in an
// order of their own, and show empty collections that nobody declared.

const (
	// rawState is where bridged providers keep what the outputs do not say of Terraform's state.
	rawState = "__pulumi_raw_state_delta"
	// document is the input that holds JSON.
	document = "document"
)

var errNoList = errors.New("List is not implemented for sdkv2 tfbridge providers")

// habitual adds the provider's own record to outputs. It differs between what was made and what was read, and means the
// same.
func (f *fake) habitual(out property.Map, read bool) property.Map {
	if !f.habits {
		return out
	}
	record := map[string]property.Value{"obj": property.New("as made")}
	if read {
		record["obj"] = property.New("as read")
		out = out.Set("labels", property.New(map[string]property.Value{}))
		out = out.Set(document, reordered(out.Get(document)))
	}
	return out.Set(rawState, property.New(record))
}

// inputsAsRead are the inputs that Read extracts.
func (f *fake) inputsAsRead(in property.Map) property.Map {
	if _, ok := in.GetOk(document); f.habits && ok {
		return in.Set(document, reordered(in.Get(document)))
	}
	return in
}

// reordered is a JSON object with its keys in another order.
func reordered(v property.Value) property.Value {
	var members map[string]json.RawMessage
	if !v.IsString() || json.Unmarshal([]byte(v.AsString()), &members) != nil {
		return v
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Reverse(names)
	text := "{"
	for i, name := range names {
		if i > 0 {
			text += ","
		}
		key, _ := json.Marshal(name) // a text is always JSON
		text += string(key) + ":" + string(members[name])
	}
	return property.New(text + "}").WithSecret(v.Secret())
}

// sameDocument reports whether two texts are the same JSON.
func sameDocument(a, b property.Value) bool {
	if !a.IsString() || !b.IsString() {
		return false
	}
	var x, y any
	if json.Unmarshal([]byte(a.AsString()), &x) != nil || json.Unmarshal([]byte(b.AsString()), &y) != nil {
		return false
	}
	one, _ := json.Marshal(x) // it came from JSON; keys are sorted
	other, _ := json.Marshal(y)
	return string(one) == string(other)
}
