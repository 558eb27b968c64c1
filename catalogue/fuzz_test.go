package catalogue

import (
	"fmt"
	"testing"
)

// FuzzMapping reads what plugins say about their names: what is kept of it is little, and the rules stay rules.
func FuzzMapping(f *testing.F) {
	for _, seed := range []string{
		`{"resources": {"aws_kms_alias": {"tok": "aws:x/y:Y", "fields": {"name": {"name": "aliasName"}}}}}`,
		`{"dataSources": {"aws_caller_identity": {"tok": "a\"b:c"}}, "resources": {"aws_kms_alias": {"tok": "a:b:C"}}}`,
		`{"resources": [{"tok": 1}], "dataSources": null}`, `{"resources"`,
	} {
		f.Add([]byte(seed))
	}
	aws, err := packageFile("aws")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		n := aws.parseMapping(answer)
		kept := 0
		for _, tf := range n.types {
			for from, to := range n.fields[tf] {
				kept += len(from) + len(to)
			}
			if _, err := aws.set(tf, n); err != nil {
				t.Errorf("%s has no rules in the names of %q: %v", tf, answer, err)
			}
		}
		if kept > len(answer) {
			t.Errorf("%d bytes of %d are kept", kept, len(answer))
		}
	})
}

func TestNamesOfFewVersionsAreKept(t *testing.T) {
	c, plugin := New(), &asked{answer: `{"resources": {"aws_kms_alias": {"tok": "aws:x/y:Y"}}}`}
	for i := range 2 * mostNamings {
		_, ok, err := c.Rules(t.Context(), "aws:x/y:Y", fmt.Sprintf("5.0.%d", i), plugin.mapping)
		if ok != (i < mostNamings) || err != nil {
			t.Errorf("version %d: %v %v", i, ok, err)
		}
	}
	if len(c.names) != mostNamings || plugin.times != mostNamings {
		t.Errorf("names of %d versions are kept, and %d were asked for", len(c.names), plugin.times)
	}
}
