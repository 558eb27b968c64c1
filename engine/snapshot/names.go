package snapshot

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// The functions of this file are total: whatever a program, a person or a file has written as a URN or a type, none of
// them panics. The SDK's own do, so the core takes URNs apart here and nowhere else.

// QualifiedType is the type of a URN with those of its parents; empty if the URN is not valid.
func QualifiedType(u urn.URN) tokens.Type {
	if !u.IsValid() {
		return ""
	}
	return u.QualifiedType()
}

// TypeOf is the type of a URN; empty if the URN is not valid.
func TypeOf(u urn.URN) tokens.Type {
	if !u.IsValid() {
		return ""
	}
	return u.Type()
}

// NameOf is the name in a URN; the whole text if it is not a valid URN.
func NameOf(u urn.URN) string {
	if !u.IsValid() {
		return string(u)
	}
	return u.Name()
}

// HasType reports whether a URN is one of a resource of a type. It is asked this way round because a type may contain
// what separates the parts of a URN: "pkg::Name" has an empty module.
func HasType(u urn.URN, t tokens.Type) bool {
	parts := strings.SplitN(string(u), urn.NameDelimiter, 3) // urn:pulumi:STACK, PROJECT, the rest
	if len(parts) < 3 || t == "" {
		return false
	}
	rest, own := parts[2], string(t)+urn.NameDelimiter
	return strings.HasPrefix(rest, own) || strings.Contains(rest, urn.TypeDelimiter+own)
}

// IsProvider reports whether a type is that of a provider resource.
func IsProvider(t tokens.Type) bool { return strings.HasPrefix(string(t), ProviderTypes) }

// ProviderTypes is how the types of provider resources begin; the package follows.
const ProviderTypes = "pulumi:providers:"

// PackageOf is the package of a type: what comes before its first colon.
func PackageOf(t tokens.Type) string {
	pkg, _, _ := strings.Cut(string(t), ":")
	return pkg
}

// Follows reports that the URN of a child follows from its parent's former name, and not from the one of now. If the
// parent's type has changed, the type in the child's URN shows it; otherwise only the name can, by the convention that
// the name of a child begins with its parent's.
func Follows(child, former, now urn.URN) bool {
	if QualifiedType(former) != QualifiedType(now) {
		types := string(QualifiedType(child))
		i := strings.LastIndex(types, urn.TypeDelimiter)
		return i >= 0 && types[:i] == string(QualifiedType(former))
	}
	return strings.HasPrefix(NameOf(child), NameOf(former)) && !strings.HasPrefix(NameOf(child), NameOf(now))
}
