package pcl_test

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/values/pcl"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestAPropertyRefersToTheResourceWhoseIDItHas(t *testing.T) {
	of := func(key resource.PropertyKey, v resource.PropertyValue) resource.PropertyMap {
		return resource.PropertyMap{key: v}
	}
	list := resource.NewProperty([]resource.PropertyValue{resource.NewProperty("vpc-1"), resource.NewProperty("vpc-2")})
	text := pcl.Program([]pcl.Resource{
		{Variable: "net", Name: "net", Type: "a:b:Net", ID: "vpc-1", Inputs: of("self", resource.NewProperty("vpc-1"))},
		{Variable: "web", Name: "web", Type: "a:b:Web", ID: "web-1", Inputs: resource.PropertyMap{
			"nets": list, "secret": resource.MakeSecret(resource.NewProperty("vpc-1")),
			"deep": resource.NewProperty(of("net", resource.NewProperty("vpc-1"))),
		}},
		{Variable: "short", Name: "short", Type: "a:b:C", ID: "b", Inputs: of("zone", resource.NewProperty("b"))},
		{Variable: "twin", Name: "twin", Type: "a:b:C", ID: "same-1", Inputs: of("zone", resource.NewProperty("b"))},
		{Variable: "other", Name: "other", Type: "a:b:D", ID: "same-1", Inputs: of("twin", resource.NewProperty("same-2"))},
		{Variable: "third", Name: "third", Type: "a:b:D", Inputs: of("twin", resource.NewProperty("same-1"))},
	})
	for _, want := range []string{
		`self = "vpc-1"`, `nets = [net.id, "vpc-2"]`, `"net" = net.id`, `secret = secret("[secret]")`, `zone = "b"`,
		`twin = "same-1"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the program does not have %s but\n%s", want, text)
		}
	}
}

func TestResourcesDoNotReferToEachOtherInACircle(t *testing.T) {
	refers := func(variable, id, to, parent string) pcl.Resource {
		return pcl.Resource{Variable: variable, Name: variable, Type: "a:b:C", ID: id, Parent: parent,
			Inputs: resource.PropertyMap{"to": resource.NewProperty(to)}}
	}
	text := pcl.Program([]pcl.Resource{
		refers("a", "id-a", "id-b", ""), refers("b", "id-b", "id-c", ""), refers("c", "id-c", "id-a", ""),
		refers("above", "id-above", "id-below", ""), refers("below", "id-below", "x", "above"),
	})
	for _, want := range []string{"to = b.id", "to = c.id", `to = "id-a"`, `to = "id-below"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the program does not have %s but\n%s", want, text)
		}
	}
}
