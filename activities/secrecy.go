package activities

import (
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// keepSecrets gives what was read of the world, with those values secret that hold secrets in what the program or the
// state says, at the same place: providers find the values and cannot know that. What is as it was keeps its secrets where
// they were. Else objects are gone into, and of a list, whose order may be another, everything is secret.
func keepSecrets(read, known resource.PropertyMap) resource.PropertyMap {
	result := plain(read)
	for key, v := range result {
		if before, ok := known[key]; ok && before.ContainsSecrets() {
			result[key] = asSecretAs(v, before)
		}
	}
	return result
}

func asSecretAs(v, before resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return v
	case !v.ContainsSecrets() && v.DeepEquals(revealed(before)):
		return plainValue(before)
	case v.IsObject() && before.IsObject():
		return resource.NewProperty(keepSecrets(v.ObjectValue(), before.ObjectValue()))
	}
	return resource.MakeSecret(v)
}

// revealed is a value with its secrets in clear.
func revealed(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return revealed(v.SecretValue().Element)
	case v.IsOutput():
		return revealed(plainValue(v))
	case v.IsObject():
		object := make(resource.PropertyMap, len(v.ObjectValue()))
		for key, element := range v.ObjectValue() {
			object[key] = revealed(element)
		}
		return resource.NewProperty(object)
	case v.IsArray():
		list := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, element := range v.ArrayValue() {
			list[i] = revealed(element)
		}
		return resource.NewProperty(list)
	}
	return v
}

// blind replaces the configuration's secrets in what a provider said: people read it, and the reasons of a failed
// initialisation are stored.
func (s *session) blind(text string) string {
	if text == "" {
		return "" // as nearly always
	}
	return blinder(s.secretTexts()).Replace(text)
}

func (s *session) blindFailures(failures []engine.CheckFailure) {
	for i := range failures {
		failures[i].Reason = s.blind(failures[i].Reason)
	}
}

func (s *session) blindStep(result *engine.StepFinished) {
	result.Error = s.blind(result.Error)
	s.blindFailures(result.Failures)
	for i, reason := range result.InitErrors {
		result.InitErrors[i] = s.blind(reason)
	}
}
