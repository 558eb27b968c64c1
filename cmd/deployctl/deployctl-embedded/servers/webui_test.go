package servers_test

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
)

func TestAPanicInTheWebUIEndsItsRequestAlone(t *testing.T) {
	opts := options(newHome(t))
	opts.Codec = func(devserver.Keys) (http.Handler, error) {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a payload that nobody expected") }),
			nil
	}
	s, err := devserver.Start(t.Context(), opts)
	must(t, err)
	defer func() { must(t, s.Close(context.Background())) }()
	b := browser(t, s)
	for range 3 {
		if answer, err := b.Post(s.Status.UIURL+"/codec/decode", "application/json", nil); err == nil {
			must(t, answer.Body.Close())
			t.Errorf("it answers %s", answer.Status)
		}
		answer, err := b.Get(s.Status.UIURL + "/api/v1/settings")
		must(t, err)
		must(t, answer.Body.Close())
		if answer.StatusCode != http.StatusOK {
			t.Errorf("the next request gets %s", answer.Status)
		}
	}
	if log, _ := os.ReadFile(filepath.Join(s.Status.Home, "logs", "service.log")); !strings.Contains(string(log),
		"a payload that nobody expected") {
		t.Errorf("the log does not say it:\n%s", log)
	}
}

func TestWhatOpenedTheWebUIOpensNothingAfterARestart(t *testing.T) {
	opts := options(newHome(t))
	first, err := devserver.Start(t.Context(), opts)
	must(t, err)
	link, err := devserver.UILink(first.Status)
	must(t, err)
	unused, err := devserver.UILink(first.Status)
	must(t, err)
	jar, err := cookiejar.New(nil)
	must(t, err)
	old, err := url.Parse(first.Status.UIURL)
	must(t, err)
	b := porttest.Browser(jar)
	answer, err := b.Get(link)
	must(t, err)
	must(t, answer.Body.Close())
	session := jar.Cookies(old)
	must(t, first.Close(context.Background()))
	if len(session) != 1 {
		t.Fatalf("the link gives %v", session)
	}

	again, err := devserver.Start(t.Context(), opts)
	must(t, err)
	defer func() { must(t, again.Close(context.Background())) }()
	now, err := url.Parse(again.Status.UIURL)
	must(t, err)
	if now.Hostname() == old.Hostname() || now.Port() != old.Port() {
		t.Errorf("the Web UI was at %s and is at %s", old, now)
	}
	if sent := jar.Cookies(now); len(sent) > 0 {
		t.Errorf("a browser sends %v", sent)
	}
	jar.SetCookies(now, session)
	for what, target := range map[string]string{
		"the session":            now.String() + "/api/v1/settings",
		"the used link":          strings.Replace(link, old.Host, now.Host, 1),
		"the link":               strings.Replace(unused, old.Host, now.Host, 1),
		"the link as it was":     unused,
		"the session, as it was": old.String() + "/api/v1/settings",
	} {
		answer, err := b.Get(target)
		must(t, err)
		must(t, answer.Body.Close())
		if answer.StatusCode < 400 {
			t.Errorf("%s is answered with %s", what, answer.Status)
		}
	}
}
