package errorclass

import (
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// FuzzPatterns matches what a stack's patterns look for with the text of an error, both of which users choose. It ends.
func FuzzPatterns(f *testing.F) {
	f.Add("Throttl*", "(a+)+$", strings.Repeat("a", examined)+"b")
	f.Add(strings.Repeat("*a", 50), "(x{1,9}){1,9}", strings.Repeat("a", 2*examined))
	f.Fuzz(func(t *testing.T, code, text, said string) {
		begun := time.Now()
		table := Table{"fake": {{Class: engine.ErrorDefinite, Code: []string{code}, Text: []string{text}}}}
		if table.Compile() == nil {
			verdict, err := table.Classify(Error{Type: "fake:index:Thing", Step: "create", Text: said})
			if err != nil || verdict.Class == "" {
				t.Errorf("%q and %q make %+v, %v", code, text, verdict, err)
			}
		}
		if took := time.Since(begun); took > waittest.Patience {
			t.Errorf("%q and %q take %s", code, text, took)
		}
	})
}
