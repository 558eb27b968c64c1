package bucket

import (
	"fmt"
	"strings"
)

// largest are the limits of objects by how their keys begin; by how they end, if it begins with '*'. Each is more than
// the service writes there. Whoever can write the bucket could otherwise have it read as much as there is memory, some
// of it for callers without a token.
var largest = []struct {
	keys  string
	bytes int64
}{
	{"*/head.json", 16 << 20},
	{"keys/", small}, {"tokens/", small}, {"members/", small}, {"teams/", small}, {"trusts/", small},
	{"profiles/", small},
	{"exchanged/", small}, {"hooks/", small}, {"organizations/", small}, {"removed/", small}, {"identities/", small},
	{"audit/", 64 << 20},
	{"plugins/", PluginPart + small},
}

// PluginPart is the size of the parts of a plugin's archive, so that none is in memory as a whole.
const PluginPart = 16 << 20

// small is the limit of an object of the service, and other that of what is of stacks.
const small, other = 1 << 20, 1 << 30

// largestOf returns the limit of the object of a key.
func largestOf(key string) int64 {
	for _, l := range largest {
		end, ends := strings.CutPrefix(l.keys, "*")
		if ends && strings.HasSuffix(key, end) || !ends && strings.HasPrefix(key, l.keys) {
			return l.bytes
		}
	}
	return other
}

// overLimit returns the error about an object that is larger than its limit.
func overLimit(key string, limit int64) error {
	return Damaged(key, fmt.Errorf("it has more than %d bytes, which the service never writes there", limit))
}
