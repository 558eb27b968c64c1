package lookup

import (
	"regexp"
	"slices"

	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// A mark is a tag, a label or an annotation that a resource gets at its creation, where a settle rule of its type says,
// if the stack asks for it. It is unlike the mark of every other create, so what bears it is what this
// create has made. It is part of the inputs from then on: the inputs of every later update get it from the state, so
// that no comparison finds a difference. What exists without a mark never gets one.

// aMark has the form of marks. Labels of all clouds may have such a value.
var aMark = regexp.MustCompile(`^[0-9a-f]{32}$`)

// IsMark reports whether a text has the form of a mark.
func IsMark(text string) bool { return aMark.MatchString(text) }

// MarkPlace returns where new resources of a type bear their marks, by the first rule that says it.
func MarkPlace(all []Known) settlerule.Mark {
	return firstPlace(all, func(set Known, r *settlerule.Rule) bool { return r.AppliesTo(set.Version) })
}

// PlaceIn returns where existing inputs bear their mark. They bear it still if the rule is none for this version of the
// plugin.
func PlaceIn(all []Known, olds resource.PropertyMap) settlerule.Mark {
	return firstPlace(all, func(_ Known, r *settlerule.Rule) bool { return aMark.MatchString(r.Mark.Get(olds)) })
}

// NamesPlace reports whether any rule says where a mark is put.
func NamesPlace(all []Known) bool {
	return !firstPlace(all, func(Known, *settlerule.Rule) bool { return true }).IsZero()
}

func firstPlace(all []Known, is func(Known, *settlerule.Rule) bool) settlerule.Mark {
	for _, set := range all {
		for i := range set.Rules {
			if r := &set.Rules[i]; !r.Mark.IsZero() && is(set, r) {
				return r.Mark
			}
		}
	}
	return settlerule.Mark{}
}

// PutMark returns declared inputs with a mark, if it is one and there is a place for it.
func PutMark(place settlerule.Mark, declared resource.PropertyMap, mark string) resource.PropertyMap {
	if place.IsZero() || !aMark.MatchString(mark) {
		return declared
	}
	marked, _ := place.Put(declared, mark)
	return marked
}

// markDepth is how deep below a resource's inputs a mark may be.
const markDepth = 6

// mayBear reports whether something in a value has the form of a mark: only then it is worth to ask which place the
// rules name.
func mayBear(v resource.PropertyValue, depth int) bool {
	switch {
	case v.IsString():
		return len(v.StringValue()) == 32 && aMark.MatchString(v.StringValue())
	case depth == 0:
	case v.IsObject():
		for _, below := range v.ObjectValue() {
			if mayBear(below, depth-1) {
				return true
			}
		}
	case v.IsArray():
		return slices.ContainsFunc(v.ArrayValue(), func(item resource.PropertyValue) bool { return mayBear(item, depth-1) })
	}
	return false
}
