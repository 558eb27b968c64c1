package monitor

import (
	"testing"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
)

func TestAPackageIsServedByItsOwnPluginWhateverElseThatServes(t *testing.T) {
	sub := pluginhost.Parameter{Name: "sub", Version: "2.0.0", Value: []byte("v")}
	base := pluginhost.Package{Name: "base", Version: "1.0.0"}
	parameterised := pluginhost.Package{Name: "base", Version: "1.0.0", Parameter: &sub}
	for name, required := range map[string][]pluginhost.Package{
		"the base first": {base, parameterised}, "the base last": {parameterised, base}, "the base left out": {parameterised},
	} {
		m := &Monitor{required: requiredBy(required)}
		asked := packageRequest{Package: pluginhost.Package{Name: "base", Version: "1.0.0"}}
		if p := m.complete(asked); p.Parameter != nil || p.provides() != "base" {
			t.Errorf("%s: base is served by %+v", name, p.Package)
		}
		asked.extension = engine.Bag{Digest: "extension"}
		if p := m.complete(asked); p.Parameter != nil {
			t.Errorf("%s: an extension of base is served by %+v", name, p.Package)
		}
		asked = packageRequest{Package: pluginhost.Package{Name: "sub"}}
		if p := m.complete(asked); p.Parameter == nil || p.Name != "base" || p.Version != "1.0.0" || p.provides() != "sub" {
			t.Errorf("%s: sub is served by %+v", name, p.Package)
		}
	}
}
