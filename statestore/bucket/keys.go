package bucket

import (
	"context"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/deployctl/deployctl/deployments"
)

// SafeSegment matches what may stand between two '/' of a key: a name that no server treats as a path.
var SafeSegment = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

// unsafeMark replaces a segment that is not safe. guarded rejects keys that contain it, so such an object can be
// neither read nor written.
const unsafeMark = "\x00"

// Key makes a key of its segments. Every key is made by it: an unsafe segment, such as "..", "a/b" or "", makes a key
// that every access rejects as CodeInvalid, so no name can leave its prefix. Only the last segment may be empty: that
// is the prefix of all keys below.
func Key(segments ...string) string {
	var key strings.Builder
	for i, segment := range segments {
		last := i == len(segments)-1
		if !SafeSegment.MatchString(segment) && (segment != "" || !last) {
			segment = unsafeMark + segment
		}
		key.WriteString(segment)
		if !last {
			key.WriteByte('/')
		}
	}
	return key.String()
}

// guarded rejects keys that a server could take for another object's: "." and ".." between slashes, empty segments,
// control characters, backslashes.
type guarded struct{ objects Objects }

// Guarded returns objects without keys that a server could take for those of others.
func Guarded(o Objects) Objects { return guarded{o} }

// CheckKey returns the error, CodeInvalid, about a key that guarded objects reject.
func CheckKey(key string) error {
	for segment := range strings.SplitSeq(strings.TrimSuffix(key, "/"), "/") {
		if segment == "" || segment == "." || segment == ".." {
			return refusedKey(key)
		}
	}
	if !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool {
		return unicode.IsControl(r) ||
			r == '\\'
	}) {
		return refusedKey(key)
	}
	return nil
}

func refusedKey(key string) error {
	return deployments.Errorf(deployments.CodeInvalid, "there can be no object %q in the store: a name in it is not "+
		"valid",
		strings.ReplaceAll(key, unsafeMark, ""))
}

func (g guarded) Get(ctx context.Context, key string) (Object, error) {
	if err := CheckKey(key); err != nil {
		return Object{}, err
	}
	return g.objects.Get(ctx, key)
}

func (g guarded) Tag(ctx context.Context, key string) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	return g.objects.Tag(ctx, key)
}

func (g guarded) Put(ctx context.Context, key string, data []byte, c Condition) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	return g.objects.Put(ctx, key, data, c)
}

func (g guarded) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return g.objects.Delete(ctx, key)
}

func (g guarded) List(ctx context.Context, q Query) (Listing, error) {
	if err := CheckKey(q.Prefix); err != nil && q.Prefix != "" {
		return Listing{}, err
	}
	return g.objects.List(ctx, q)
}
