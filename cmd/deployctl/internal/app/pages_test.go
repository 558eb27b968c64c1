package app

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

func TestTheConsoleIsServedUnlessASettingSaysOtherwise(t *testing.T) {
	for _, c := range []struct {
		name, console, webUI string
		served, wrong        bool
		temporal             string
	}{
		{name: "nothing", served: true, temporal: "http://of-the-service/namespaces/n"},
		{name: "off", console: "off"},
		{name: "on", console: "on", webUI: "https://temporal.internal/", served: true,
			temporal: "https://temporal.internal/namespaces/default"},
		{name: "neither", console: "yes", wrong: true},
		{name: "a script", webUI: "javascript:alert(1)", wrong: true},
		{name: "a password", webUI: "https://ann:secret@temporal.internal", wrong: true},
		{name: "no host", webUI: "/temporal", wrong: true},
	} {
		loaded, err := settings.Load(settings.Sources{File: t.TempDir() + "/none", Variable: func(name string) string {
			return map[string]string{"DEPLOYCTL_CONSOLE": c.console, "DEPLOYCTL_TEMPORAL_WEB_UI": c.webUI}[name]
		}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := pagesOf(loaded, "http://of-the-service/namespaces/n")
		if (err != nil) != c.wrong || (p != nil) != c.served ||
			c.wrong && deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %+v, %v", c.name, p, err)
		} else if p != nil && p.temporal != c.temporal {
			t.Errorf("%s: workflows are linked at %s", c.name, p.temporal)
		}
	}
}
