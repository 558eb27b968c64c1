package deployments

import (
	"strings"
	"testing"
)

func TestWhatStandsForAnOmittedValueTellsItsSize(t *testing.T) {
	large := Omit(strings.Repeat("x", 98))
	if size, ok := OmittedSize(large); size != 100 || !ok {
		t.Errorf("%q stands for %d bytes: %v", large, size, ok)
	}
	if Omit("a") == Omit("b") {
		t.Error("different values have the same text")
	}
	for _, other := range []any{nil, 100.0, "", "(100 bytes)", large + ".", strings.Replace(large, "100", "-10", 1),
		strings.Replace(large, "export", "output", 1), map[string]any{"a": large}} {
		if size, ok := OmittedSize(other); ok {
			t.Errorf("%v is taken for a value of %d bytes", other, size)
		}
	}
}
