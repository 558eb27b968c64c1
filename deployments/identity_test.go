package deployments_test

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestAnIdentityIsAFirstNameOrALaterOneOfIt(t *testing.T) {
	for text, want := range map[string]string{
		"o/p/dev": "o/p/dev", "o/p/dev#2": "o/p/dev", "o/p/dev#17": "o/p/dev",
		"": "", "dev": "", "p/dev": "", "o/p/dev/x": "", "o/p/": "", "/p/dev": "", "o/p/dev#": "", "o/p/dev#1": "",
		"o/p/dev#02": "", "o/p/dev#+2": "", "o/p/dev#2#3": "", "o/p/d v": "", "o/../dev": "", " o/p/dev": "",
		"o/p/dev\x00": "",
	} {
		name, err := deployments.ParseIdentity(text)
		if got := name.String(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q is of %q, %v", text, got, err)
		}
	}
}
