package pcl_test

import (
	"testing"

	"github.com/deployctl/deployctl/internal/values/pcl"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

func TestAProgramDeclaresItsResourcesAndShowsNoSecret(t *testing.T) {
	file := &asset.Asset{Path: "a.txt"}
	text := pcl.Program([]pcl.Resource{
		{Variable: "site_1", Name: "site 1", Type: "a:b:Site", Parent: "above", Provider: "east", Protect: true,
			Inputs: resource.PropertyMap{
				"__defaults": resource.NewProperty([]resource.PropertyValue{}), "none": resource.NewNullProperty(),
				"size": resource.NewProperty(1.5), "big": resource.NewProperty(1e21), "on": resource.NewProperty(true),
				"text": resource.NewProperty("a \"b\" ${c} %{d} $e\n\x01é"), "file": resource.NewProperty(file),
				"password": resource.MakeSecret(resource.NewProperty("sesame")), "not an attribute": resource.NewProperty(1.0),
				"list": resource.NewProperty([]resource.PropertyValue{resource.NewProperty(1.0), resource.NewProperty(
					resource.PropertyMap{"k v": resource.NewProperty("x"), "__type": resource.NewProperty("y")})}),
				"empty": resource.NewProperty(resource.PropertyMap{}),
			}},
		{Variable: "plain", Name: "plain", Type: "a:b:C"},
	})
	want := `resource "site_1" "a:b:Site" {
  __logicalName = "site 1"
  big = 1000000000000000000000
  empty = {}
  file = fileAsset("a.txt")
  list = [1, {
    "k v" = "x"
  }]
  on = true
  password = secret("[secret]")
  size = 1.5
  text = "a \"b\" $${c} %%{d} $e\n\u0001é"
  options {
    parent = above
    provider = east
    protect = true
  }
}

resource "plain" "a:b:C" {
}
`
	if text != want {
		t.Errorf("the program is\n%s", text)
	}
}
