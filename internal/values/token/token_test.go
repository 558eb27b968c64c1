package token_test

import (
	"testing"

	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

func TestPackageIsWhatComesBeforeTheFirstColon(t *testing.T) {
	for text, want := range map[string]tokens.Package{
		"aws:s3/bucket:Bucket": "aws", "aws:index": "aws", "pkg::Name": "pkg", "foo": "", "": "", ":": "", "::": "",
	} {
		if got := token.Package(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTypesAndFunctionsHaveThreeParts(t *testing.T) {
	for text, ok := range map[string]bool{
		"aws:s3/bucket:Bucket": true, "pkg::Name": true, "a:b:c:d": true,
		"": false, "foo": false, "my:Comp": false, ":": false, "::": false, "a::": false, "::x": false, "a:b:": false,
	} {
		if _, err := token.ParseType(text); (err == nil) != ok {
			t.Errorf("type %q: %v", text, err)
		}
		if _, err := token.ParseFunction(text); (err == nil) != ok {
			t.Errorf("function %q: %v", text, err)
		}
	}
}

func TestReferencesNameAProvider(t *testing.T) {
	for text, ok := range map[string]bool{
		"urn:pulumi:dev::p::pulumi:providers:aws::default::id":   true,
		"urn:pulumi:dev::p::pulumi:providers:aws::default::":     true,
		"urn:pulumi:dev::p::a:b:C$pulumi:providers:aws::name::1": true,
		"urn:pulumi:dev::p::my:Comp::name::id":                   false,
		"urn:pulumi:dev::p::foo::name::id":                       false,
		"urn:pulumi:dev::p::pulumi:providers:::name::id":         false,
		"urn:pulumi:dev::p::aws:s3:Bucket::name::id":             false,
		"urn:pulumi:::::::":                                      false,
		"pulumi:providers:aws::id":                               false,
		"::":                                                     false, "": false, "x": false,
	} {
		if _, err := token.ParseReference(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{
		"", ":", "::", "foo", "my:Comp", "pkg::Name", "aws:s3/bucket:Bucket", "pulumi:providers:aws",
		"pulumi:providers:",
		"urn:pulumi:dev::p::pulumi:providers:aws::default::id", "urn:pulumi:dev::p::my:Comp::name::id",
		"urn:pulumi:::::::",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pkg := token.Package(text)
		if typ, err := token.ParseType(text); err == nil && typ.Package() != pkg {
			t.Errorf("package of %q: %q, want %q", text, pkg, typ.Package())
		}
		if fn, err := token.ParseFunction(text); err == nil && fn.Package() != pkg {
			t.Errorf("package of %q: %q, want %q", text, pkg, fn.Package())
		}
		if token.IsProvider(text) != (token.ProviderPackage(tokens.Type(text)) != "") {
			t.Errorf("%q is a provider's type or not", text)
		}
		if ref, err := token.ParseReference(text); err == nil && !token.IsProvider(ref.URN().Type()) {
			t.Errorf("%q is a reference to %s", text, ref.URN())
		}
	})
}
