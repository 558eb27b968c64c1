package journal

import (
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/values/rawjson"
)

// Size is what a state has: bytes of JSON, resources, and references of these.
type Size struct {
	Bytes, Resources, References int
}

// mostNested is how deep a list of a header is in a journal entry at most: in propertyDependencies of the resource of
// an operation of a whole state.
const mostNested = 8

// Members of a resource that are no part of its header, and those that have a list for each of their members. The
// latter take memory also if their list is empty.
var (
	noHeader = []string{"inputs", "outputs", "replacementTrigger", "stackTrace"}
	lists    = []string{"propertyDependencies", "resourceHooks"}
)

// References returns how many elements the lists have in the header of a resource, or of all resources of a journal
// entry; the values of the resources do not count. Nearly all are URNs. These are short if there are many of them, and
// take 16 bytes or more each wherever a state is in memory. The text must be valid JSON.
func References(raw []byte) int { return countReferences(raw, mostNested) }

func countReferences(raw []byte, nested int) (n int) {
	if nested == 0 {
		return 0
	}
	for element := range rawjson.Elements(raw) {
		if rawjson.IsObject(element) { // a resource
			n += countReferences(element, nested-1)
			continue
		}
		n++
	}
	for name, value := range rawjson.Members(raw) {
		switch {
		case among(noHeader, name):
		case among(lists, name):
			for _, list := range rawjson.Members(value) {
				n += 1 + countReferences(list, 1)
			}
		default:
			n += countReferences(value, nested-1)
		}
	}
	return n
}

// among reports whether encoding/json takes a name for one of a list, whose case it ignores.
func among(list []string, name string) bool {
	return slices.ContainsFunc(list, func(one string) bool { return strings.EqualFold(one, name) })
}
