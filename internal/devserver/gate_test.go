package devserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// testGate is the gate of a Web UI that answers everything, and panics when asked to.
func testGate(t *testing.T) (gate *gate, link func() string) {
	t.Helper()
	h := mustOpen(t, newHome(t))
	var r reserved
	t.Cleanup(r.release)
	data, err := ensureData(t.Context(), h, Ports{}, &r)
	must(t, err)
	shown := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("shown")) })
	status := Status{Home: string(h), Instance: "first", UIURL: uiURL("first", data.ports)}
	gate, err = newGate(status, data.keys, shown, shown)
	must(t, err)
	return gate, func() string {
		link, err := UILink(status)
		must(t, err)
		return link
	}
}

// ask sends a request through the gate with headers NAME: VALUE.
func ask(g *gate, method, target string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	g.ServeHTTP(recorder, r)
	return recorder.Result()
}

// admitted opens a link and gives the header of the session.
func admitted(t *testing.T, g *gate, link string) string {
	t.Helper()
	for _, cookie := range ask(g, http.MethodGet, link).Cookies() {
		if cookie.Name == sessionCookie {
			return "Cookie: " + cookie.Name + "=" + cookie.Value
		}
	}
	t.Fatal("the link gives no session")
	return ""
}

func TestTheWebUIIsShownToWhomHasOpenedALink(t *testing.T) {
	g, link := testGate(t)
	page, once := "http://"+g.address+"/namespaces/deployctl/workflows", link()
	session := admitted(t, g, once)
	forged := strings.Replace(session, sessionCookie+"=", sessionCookie+"=9", 1) // a later end
	for _, c := range []struct {
		what, target string
		headers      []string
		want         int
	}{
		{"a browser with a session", page, []string{session}, http.StatusOK},
		{"a browser without one", page, nil, http.StatusUnauthorized},
		{"a browser with a forged session", page, []string{forged}, http.StatusUnauthorized},
		{"a used link", once, nil, http.StatusForbidden},
		{"a link as a session", page, []string{"Cookie: " + sessionCookie + "=" + mustQuery(t, link(), "link")},
			http.StatusUnauthorized},
		{"a changed link", link() + "0", nil, http.StatusForbidden},
		{"no link", "http://" + g.address + openPath, nil, http.StatusForbidden},
		{"another host's name", page, []string{session, "Host: evil.example"}, http.StatusMisdirectedRequest},
		{"a name of loopback that others could have", page, []string{session, "Host: x.localhost:1"},
			http.StatusMisdirectedRequest},
		{"the loopback address, which was another's before", page, []string{session,
			"Host: 127.0.0.1" + g.address[strings.Index(g.address, ":"):]}, http.StatusMisdirectedRequest},
		{"a page elsewhere that embeds it", page, []string{session, "Sec-Fetch-Site: cross-site",
			"Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, http.StatusForbidden},
		{"a page of another port that reads it", page, []string{session, "Sec-Fetch-Site: same-site",
			"Sec-Fetch-Mode: cors"}, http.StatusForbidden},
		{"a link in a mail", page, []string{session, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
			"Sec-Fetch-Dest: document"}, http.StatusOK},
	} {
		if got := ask(g, http.MethodGet, c.target, c.headers...).StatusCode; got != c.want {
			t.Errorf("%s gets %d, not %d", c.what, got, c.want)
		}
	}
}

func TestTheWebUIChangesNothingButACancel(t *testing.T) {
	g, link := testGate(t)
	session := admitted(t, g, link())
	workflow := "http://" + g.address + "/api/v1/namespaces/deployctl/workflows/update%2Forganization%2Fweb%2Fdev%2F1/"
	for path, want := range map[string]int{
		workflow + "cancel": http.StatusOK, workflow + "query/__stack_trace": http.StatusOK, "http://" + g.address +
			codecPath + "/decode": http.StatusOK,
		workflow + "reset": http.StatusForbidden, workflow + "terminate": http.StatusForbidden, workflow +
			"signal/cancel": http.StatusForbidden,
		workflow + "update/submit": http.StatusForbidden, workflow + "pause": http.StatusForbidden,
		"http://" + g.address + "/api/v1/namespaces/deployctl/workflows/x":          http.StatusForbidden, // starts one
		"http://" + g.address + "/api/v1/namespaces/deployctl/batch-operations/x":   http.StatusForbidden,
		"http://" + g.address + "/api/v1/namespaces/deployctl/schedules/x/patch":    http.StatusForbidden,
		"http://" + g.address + "/api/v1/namespaces/deployctl/workflows/x/../y/z/q": http.StatusForbidden,
	} {
		if got := ask(g, http.MethodPost, path, session, "Origin: http://"+g.address,
			"Sec-Fetch-Site: same-origin").StatusCode; got != want {
			t.Errorf("POST %s gets %d, not %d", path, got, want)
		}
		for _, foreign := range [][]string{
			{"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"},
			{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"},
			{"Origin: http://evil.example"}, {"Origin: http://127.0.0.1:1"}, {"Origin: null"},
		} {
			if got := ask(g, http.MethodPost, path, append(foreign,
				session)...).StatusCode; got != http.StatusForbidden {
				t.Errorf("POST %s by a page with %s gets %d", path, foreign, got)
			}
		}
		if got := ask(g, http.MethodPost, path).StatusCode; got != http.StatusUnauthorized {
			t.Errorf("POST %s without a session gets %d", path, got)
		}
		if got := ask(g, http.MethodDelete, path, session).StatusCode; got != http.StatusForbidden {
			t.Errorf("DELETE %s gets %d", path, got)
		}
	}
}

func TestALinkLeadsToAPageOfTheWebUIAlone(t *testing.T) {
	g, link := testGate(t)
	for to, want := range map[string]string{
		"":                            `"http://` + g.address + `/namespaces/deployctl/workflows"`,
		"/namespaces/deployctl/x?y=z": `"http://` + g.address + `/namespaces/deployctl/x?y=z"`,
		"https://evil.example":        `"http://` + g.address + `/namespaces/deployctl/workflows"`,
		"//evil.example/":             `"http://` + g.address + `//evil.example/"`,
		`/"-alert(1)-"</script>`:      `"http://` + g.address + `/\"-alert(1)-\"\u003c/script\u003e"`,
	} {
		answer := ask(g, http.MethodGet, link()+"&to="+url.QueryEscape(to))
		text, err := io.ReadAll(answer.Body)
		must(t, err)
		if !strings.Contains(strings.ReplaceAll(string(text), `\/`, "/"), "location.replace("+want+")") {
			t.Errorf("to %s it leads by\n%s", to, text)
		}
	}
}

func mustQuery(t *testing.T, link, name string) string {
	t.Helper()
	u, err := url.Parse(link)
	must(t, err)
	return u.Query().Get(name)
}
