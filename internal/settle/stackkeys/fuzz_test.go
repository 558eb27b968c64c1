package stackkeys_test

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
)

// FuzzValues has a stack set any text: it is read, or refused by the name of its key.
func FuzzValues(f *testing.F) {
	for _, text := range []string{"true", "yess", "{}", `{"toy": {"attempts": 2, "initial": "1s"}}`,
		`{"aws": [{"class": "definite", "code": ["InvalidThing"]}]}`, `{"a:b:C": {"read": "${name}"}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, key := range stackkeys.All() {
			err := stackkeys.Check(key, text)
			if err != nil && (deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), key)) {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
}
