package lookup

import "testing"

// FuzzDeclarations reads what a provider declares, which may be anything.
func FuzzDeclarations(f *testing.F) {
	f.Add([]byte(`{"toy:index:Thing": "read"}`))
	f.Fuzz(func(_ *testing.T, data []byte) { declaredBy(data) })
}
