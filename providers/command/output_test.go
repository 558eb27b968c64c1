package command

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestAnOutputIsKeptWholeUpToItsBound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, mostKept / 2, mostKept - 1, mostKept, mostKept + 1, 3*mostKept + 17} {
		said := make([]byte, size)
		for i := range said {
			said[i] = 'a' + byte(random.IntN(26))
		}
		var o output
		for rest := said; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(mostKept))
			if taken, err := o.Write(rest[:n]); taken != n || err != nil {
				t.Fatal(taken, err)
			}
			rest = rest[n:]
		}
		got := o.text()
		if size <= mostKept && got != string(said) {
			t.Errorf("%d bytes are not kept whole", size)
		}
		if size > mostKept {
			half := mostKept / 2
			if !strings.HasPrefix(got, string(said[:half])) || !bytes.HasSuffix([]byte(got), said[size-half:]) {
				t.Errorf("of %d bytes, not the beginning and the end are kept", size)
			}
			if !strings.Contains(got, "bytes are left out here") || len(got) > mostKept+200 {
				t.Errorf("of %d bytes, %d are kept", size, len(got))
			}
		}
	}
}
