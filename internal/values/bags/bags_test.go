package bags

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/testkit/rapidtest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"pgregory.net/rapid"
)

// memoryBlobs keeps blobs in a map.
type memoryBlobs map[engine.Ref][]byte

func (m memoryBlobs) Put(_ context.Context, data []byte) (engine.Ref, error) {
	ref := snapshot.BlobRef(fmt.Sprintf("%x", sha256.Sum256(data)))
	m[ref] = data
	return ref, nil
}

func (m memoryBlobs) Get(_ context.Context, ref engine.Ref) ([]byte, error) { return m[ref], nil }

func str(s string) resource.PropertyValue { return resource.NewProperty(s) }

const someURN = urn.URN("urn:pulumi:dev::web::aws:s3/bucket:Bucket::site")

// everyKind has one value of each kind but the unknown ones.
func everyKind(t *testing.T) resource.PropertyMap {
	t.Helper()
	txt, err := asset.FromText("hello")
	if err != nil {
		t.Fatal(err)
	}
	arch, err := archive.FromAssets(map[string]any{"a/b.txt": txt})
	if err != nil {
		t.Fatal(err)
	}
	return resource.PropertyMap{
		"null": resource.NewNullProperty(), "yes": resource.NewProperty(true), "n": resource.NewProperty(1.5),
		"big": resource.NewProperty(1e21), "nan": resource.NewProperty(math.Inf(-1)),
		"text":  str("a <b> & \"c\" \u2028 ü"),
		"bytes": str("\xff\x00"), "list": resource.NewProperty([]resource.PropertyValue{str("x"),
			resource.NewProperty(resource.PropertyMap{})}),
		"secret": resource.MakeSecret(resource.NewProperty(resource.PropertyMap{
			"in": resource.MakeSecret(str("hush"))})),
		"asset":   resource.NewProperty(txt),
		"file":    resource.NewProperty(&asset.Asset{Sig: asset.AssetSig, Path: "/here/index.html", Hash: "abc"}),
		"archive": resource.NewProperty(arch),
		"ref":     resource.MakeCustomResourceReference(someURN, "id-1", "1.2.3"),
		"part":    resource.MakeComponentResourceReference(someURN, ""),
	}
}

func TestEveryKindOfValueComesBackFromABag(t *testing.T) {
	values := everyKind(t)
	values["unknown"] = resource.MakeComputed(str(""))
	values["unknown list"] = resource.MakeComputed(resource.NewProperty([]resource.PropertyValue{}))
	values["output"] = resource.NewProperty(resource.Output{Element: str("v"), Known: true, Secret: true,
		Dependencies: []urn.URN{someURN}})
	c := &Codec{Key: []byte("key")}
	bag, err := c.Encode(t.Context(), values)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Decode(t.Context(), bag)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range values {
		if !reflect.DeepEqual(got[k], v) {
			t.Errorf("%s is %#v, was %#v", k, got[k], v)
		}
	}
}

func TestThePlainFormIsTheFieldsWireForm(t *testing.T) {
	values := everyKind(t)
	delete(values, "nan") // the wire has such numbers as they are
	plain, err := Plain(values)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FromPlain(plain)
	if err != nil {
		t.Fatal(err)
	}
	opts := plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, KeepResources: true, KeepOutputValues: true,
		KeepByteString: true}
	want, err := plugin.MarshalProperties(values, opts)
	if err != nil {
		t.Fatal(err)
	}
	have, err := plugin.MarshalProperties(got, opts)
	if err != nil || !reflect.DeepEqual(want.AsMap(), have.AsMap()) {
		t.Fatalf("%v\nwire %v\nours %v", err, want, have)
	}
}

func TestAValueHasOneDigestBeforeAndAfterItWasStored(t *testing.T) {
	values := everyKind(t)
	values["output"] = resource.NewProperty(resource.Output{Element: str("v"), Known: true, Secret: true,
		Dependencies: []urn.URN{someURN}})
	stored, err := Stored(values, func(s string) (string, error) { return "sealed:" + s, nil })
	if err != nil {
		t.Fatal(err)
	}
	back, err := FromStored(stored.JSON, func(s string) (string, error) {
		return strings.TrimPrefix(s, "sealed:"),
			nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if mustDigest(t, values) != mustDigest(t, back) {
		t.Fatalf("two digests of\n%v\n%v", values, back)
	}
}

func mustDigest(t *testing.T, m resource.PropertyMap) string {
	t.Helper()
	d, err := Digest([]byte("key"), m)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheDigestDependsOnTheContentOfAFileAndNotOnItsPlace(t *testing.T) {
	file := func(path, hash string) resource.PropertyMap {
		return resource.PropertyMap{"f": resource.NewProperty(&asset.Asset{Sig: asset.AssetSig, Path: path,
			Hash: hash})}
	}
	if mustDigest(t, file("/a/x", "1")) != mustDigest(t, file("/b/x", "1")) {
		t.Error("another directory gave another digest")
	}
	if mustDigest(t, file("/a/x", "1")) == mustDigest(t, file("/a/x", "2")) {
		t.Error("another content gave the same digest")
	}
}

func TestASecretIsNotEqualToItsPlainValue(t *testing.T) {
	if mustDigest(t, resource.PropertyMap{"a": str("x")}) == mustDigest(t,
		resource.PropertyMap{"a": resource.MakeSecret(str("x"))}) {
		t.Fatal("same digest")
	}
}

func TestALargeBagIsABlob(t *testing.T) {
	blobs := memoryBlobs{}
	c := &Codec{Key: []byte("key"), Blobs: blobs}
	values := resource.PropertyMap{"big": str(strings.Repeat("x", InlineLimit))}
	bag, err := c.Encode(t.Context(), values)
	if err != nil || bag.Ref == "" || bag.Inline != nil {
		t.Fatalf("%+v, %v", bag, err)
	}
	for range 2 { // from the store, then from memory
		got, err := c.Decode(t.Context(), bag)
		if err != nil || !got.DeepEquals(values) {
			t.Fatalf("%v, %v", got, err)
		}
		clear(blobs)
	}
}

func TestAnEmptyMapIsTheEmptyBag(t *testing.T) {
	c := &Codec{Key: []byte("key")}
	bag, err := c.Encode(t.Context(), resource.PropertyMap{})
	if err != nil || !reflect.DeepEqual(bag, engine.Bag{}) {
		t.Fatalf("%+v, %v", bag, err)
	}
	if got, err := c.Decode(t.Context(), bag); err != nil || len(got) != 0 {
		t.Fatalf("%v, %v", got, err)
	}
}

func TestRandomValuesComeBackFromBothForms(t *testing.T) {
	leaf := rapid.OneOf(
		rapid.Map(rapid.String(), str),
		rapid.Map(rapid.Float64(), resource.NewProperty[float64]),
		rapid.Map(rapid.Bool(), resource.NewProperty[bool]),
		rapid.Just(resource.NewNullProperty()),
	)
	var value func(depth int) *rapid.Generator[resource.PropertyValue]
	value = func(depth int) *rapid.Generator[resource.PropertyValue] {
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf,
			rapid.Map(value(depth-1), resource.MakeSecret),
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), resource.NewProperty[[]resource.PropertyValue]),
			rapid.Map(rapid.MapOfN(rapid.StringMatching("[a-z_]{0,5}"), value(depth-1), 0, 3),
				func(m map[string]resource.PropertyValue) resource.PropertyValue {
					o := resource.PropertyMap{}
					for k, v := range m {
						o[resource.PropertyKey(k)] = v
					}
					return resource.NewProperty(o)
				}))
	}
	rapidtest.Check(t, func(t *rapid.T) {
		values := resource.PropertyMap{"v": value(3).Draw(t, "value")}
		plain, err := Plain(values)
		if err != nil {
			t.Fatal(err)
		}
		fromPlain, err := FromPlain(plain)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Plain(fromPlain)
		if string(again) != string(plain) {
			t.Fatalf("%s became %s", plain, again)
		}
		stored, err := Stored(values, func(s string) (string, error) { return "c" + s, nil })
		if err != nil {
			t.Fatal(err)
		}
		fromStored, err := FromStored(stored.JSON, func(s string) (string, error) { return s[1:], nil })
		if err != nil {
			t.Fatal(err)
		}
		a, _ := Digest(nil, values)
		b, _ := Digest(nil, fromStored)
		if a != b {
			t.Fatalf("%s has another digest once stored as %s", plain, stored.JSON)
		}
	})
}
