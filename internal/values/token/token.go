// Package token reads what programs and plugins write as type tokens, function tokens, URNs and provider references.
// Its functions are total: the Pulumi SDK's own panic on tokens of another form than they expect, so nothing else in
// the code that talks to programs and plugins calls those.
package token

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// providerModule is what comes before the package in the type of a provider.
const providerModule = "pulumi:providers:"

// Package returns the package of a type or function token: what comes before its first colon. It is empty for a token
// without a colon, which belongs to no package.
func Package[T ~string](token T) tokens.Package {
	pkg, _, ok := strings.Cut(string(token), ":")
	if !ok {
		return ""
	}
	return tokens.Package(pkg)
}

// ParseType reads the type of a custom resource or of a remote component: package, module and name.
func ParseType(text string) (tokens.Type, error) {
	if err := members(text); err != nil {
		return "", fmt.Errorf("type %w", err)
	}
	return tokens.Type(text), nil
}

// ParseFunction reads the token of a function or method: package, module and name.
func ParseFunction(text string) (tokens.ModuleMember, error) {
	if err := members(text); err != nil {
		return "", fmt.Errorf("function %w", err)
	}
	return tokens.ModuleMember(text), nil
}

// longestName bounds, in bytes, a type and a name.
const longestName = 4 << 10

// CheckName checks that a type and a name make a URN of which both can be read again.
func CheckName(typ, name string) error {
	switch {
	case typ == "":
		return fmt.Errorf("the resource %.100q has no type", name)
	case len(typ) > longestName || len(name) > longestName:
		return fmt.Errorf("the type or the name of %.100s %.100s… is longer than %d bytes", typ, name, longestName)
	case strings.HasPrefix(typ, ":") || strings.HasSuffix(typ, ":") || strings.Contains(typ, ":::") ||
		strings.Contains(typ, urn.TypeDelimiter):
		return fmt.Errorf("the type %.100q of resource %.100q cannot stand in a URN: it begins or ends with a colon, "+
			"or has %q in it",
			typ, name, urn.TypeDelimiter)
	}
	return nil
}

func members(text string) error {
	pkg, rest, _ := strings.Cut(text, ":")
	_, name, ok := strings.Cut(rest, ":")
	if !ok || pkg == "" || name == "" {
		return fmt.Errorf("%q is not of the form package:module:name", text)
	}
	return nil
}

// ValidURN reports whether a URN can be taken apart: the SDK's functions panic on a text that does not begin as a URN.
func ValidURN(u urn.URN) bool {
	return u.IsValid() && u.Stack() != "" && u.Project() != "" && u.Type() != ""
}

// longestURN bounds, in bytes, a URN that only says what a text is about.
const longestURN = 64 << 10

// ParseURN reads a URN that says what a text is about; it may be empty. The error does not repeat a long one.
func ParseURN(text string) (urn.URN, error) {
	switch u := urn.URN(text); {
	case len(text) > longestURN:
		return "", fmt.Errorf("a URN of %d bytes is longer than %d", len(text), longestURN)
	case text == "" || ValidURN(u):
		return u, nil
	}
	return "", fmt.Errorf("%.100q is not a URN", text)
}

// CheckResource reports why no update could handle a resource of a state, by its URN, its type and its provider.
func CheckResource(u urn.URN, typ tokens.Type, custom bool, provider string) error {
	switch {
	case u == "":
		return errors.New("it has no URN")
	case !ValidURN(u):
		return errors.New("its URN is not valid")
	case typ == "":
		return errors.New("it has no type")
	}
	if custom {
		if _, err := ParseType(string(typ)); err != nil {
			return fmt.Errorf("it is a custom resource, and its %w", err)
		}
	}
	if provider != "" {
		if _, err := ParseReference(provider); err != nil {
			return fmt.Errorf("its provider: %w", err)
		}
	}
	return nil
}

// IsProvider reports whether a type is that of a provider.
func IsProvider[T ~string](typ T) bool {
	name, ok := strings.CutPrefix(string(typ), providerModule)
	return ok && name != ""
}

// ProviderType is the type of the providers of a package.
func ProviderType(pkg string) tokens.Type { return tokens.Type(providerModule + pkg) }

// ProviderPackage is the package that providers of a type provide; empty for types that are not those of a provider.
func ProviderPackage(typ tokens.Type) tokens.Package {
	name, ok := strings.CutPrefix(string(typ), providerModule)
	if !ok {
		return ""
	}
	return tokens.Package(name)
}

// ParseReference reads a reference to a provider, URN::ID.
func ParseReference(text string) (providers.Reference, error) {
	i := strings.LastIndex(text, urn.NameDelimiter)
	if i < 0 {
		return providers.Reference{}, fmt.Errorf("%q is not a provider reference: it has no id", text)
	}
	return NewReference(urn.URN(text[:i]), resource.ID(text[i+len(urn.NameDelimiter):]))
}

// NewReference is the reference to the provider with a URN and an id.
func NewReference(u urn.URN, id resource.ID) (providers.Reference, error) {
	if !u.IsValid() {
		return providers.Reference{}, fmt.Errorf("%q is not a valid URN", u)
	}
	if !IsProvider(u.Type()) {
		return providers.Reference{}, fmt.Errorf("%q is not the URN of a provider", u)
	}
	return providers.NewReference(u, id)
}
