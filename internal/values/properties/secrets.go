package properties

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// KeepSecrets returns what a provider read, with those values made secret that contain secrets at the same place in
// what the program or the state says: the provider cannot know that. An unchanged value keeps its secrets where they
// were. Of a changed object each property is treated like that; a changed list, whose order may differ, becomes secret
// as a whole.
func KeepSecrets(read, known resource.PropertyMap) resource.PropertyMap {
	result := WithoutOutputs(read)
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
	case !v.ContainsSecrets() && v.DeepEquals(Reveal(before)):
		return WithoutOutput(before)
	case v.IsObject() && before.IsObject():
		return resource.NewProperty(KeepSecrets(v.ObjectValue(), before.ObjectValue()))
	}
	return resource.MakeSecret(v)
}

// Reveal returns a value with its secrets as plaintext.
func Reveal(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return Reveal(v.SecretValue().Element)
	case v.IsOutput():
		return Reveal(WithoutOutput(v))
	case v.IsObject():
		object := make(resource.PropertyMap, len(v.ObjectValue()))
		for key, element := range v.ObjectValue() {
			object[key] = Reveal(element)
		}
		return resource.NewProperty(object)
	case v.IsArray():
		list := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, element := range v.ArrayValue() {
			list[i] = Reveal(element)
		}
		return resource.NewProperty(list)
	}
	return v
}
