package bags

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestAnExtensionComesBackFromItsBag(t *testing.T) {
	blobs := memoryBlobs{}
	c := &Codec{Key: []byte("k"), Blobs: blobs}
	refs := map[string]bool{}
	for _, e := range []apitype.Extension{
		{Name: "gateway", Version: "1.2.3"},
		{Name: "gateway", Version: "1.2.4", Value: []byte{0, 1, 0xff}},
		{Name: "gateway", Version: "1.2.3", Value: []byte(strings.Repeat("crd ", 1000))},
	} {
		bag, err := c.EncodeExtension(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.DecodeExtension(t.Context(), bag)
		if err != nil || got.Name != e.Name || got.Version != e.Version || string(got.Value) != string(e.Value) {
			t.Errorf("%+v comes back as %+v: %v", e, got, err)
		}
		if refs[bag.Digest] = true; len(bag.Inline) > 1000 {
			t.Errorf("%d bytes travel with every resource", len(bag.Inline))
		}
	}
	if len(refs) != 3 || len(blobs) != 1 {
		t.Errorf("there are %d references and %d blobs", len(refs), len(blobs))
	}
}

// TestTheReferenceOfAnExtensionIsThatOfPulumi has the SHA-256 of the parts with a zero byte after all but the last.
func TestTheReferenceOfAnExtensionIsThatOfPulumi(t *testing.T) {
	const want = "847b1a4d2f4caf7dbddbacbfec55dea78eb56c307d585342dfd911e6c44ce3cb"
	if got := ExtensionRef(apitype.Extension{Name: "gateway", Version: "1.2.3", Value: []byte("crds")}); got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestWhatIsNoExtensionIsRefused(t *testing.T) {
	c := &Codec{Key: []byte("k")}
	for name, values := range map[string]map[string]string{"nothing": {"a": "b"}, "no name": {"value": "AQ=="},
		"no base64": {"name": "n", "value": "?"}} {
		bag := engine.Bag{Digest: "x", Inline: []byte("{")}
		for k, v := range values {
			bag.Inline = append(bag.Inline, `"`+k+`":"`+v+`",`...)
		}
		bag.Inline[len(bag.Inline)-1] = '}'
		if e, err := c.DecodeExtension(t.Context(), bag); deployments.CodeOf(err) != deployments.CodeInternal {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}
