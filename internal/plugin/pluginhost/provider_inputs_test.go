package pluginhost

import (
	"maps"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestWhatAProviderResourceStoresSaysWhichPluginItUses(t *testing.T) {
	for name, request := range map[string]Package{
		"by name":    {Name: "toy"},
		"by version": {Name: "toy", Version: "1.2.3", DownloadURL: "https://plugins.example/x"},
		"by parameter": {Name: "base", Version: "1.0.0",
			Parameter: &Parameter{Name: "toy", Version: "2.0.0", Value: []byte("v")}},
		"with other names in its environment": {Name: "toy", Env: map[string]string{"MINE": "TOKEN"}},
	} {
		t.Run(name, func(t *testing.T) {
			inputs := resource.PropertyMap{}
			request.PutInto(inputs, nil)
			got, err := PackageOf("pulumi:providers:toy", inputs)
			if err != nil || got.Name != request.Name || got.Version != request.Version ||
				got.DownloadURL != request.DownloadURL ||
				!maps.Equal(got.Env, request.Env) {
				t.Fatalf("%+v from %v: %v", got, inputs, err)
			}
			if p := request.Parameter; p != nil && (got.Parameter.Version != p.Version ||
				string(got.Parameter.Value) != "v") {
				t.Errorf("%+v", got.Parameter)
			}
		})
	}
}
