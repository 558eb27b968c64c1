package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// hostile is markup that must be a text in every page.
const hostile = `<img src=x onerror=alert(1)>"'&<script>alert(1)</script>`

func urnOf(typ, name string) string { return "urn:pulumi:dev::shop::" + typ + "::" + name }

func at(seconds int) int { return int(began.Unix()) + seconds }

// ran are the events of a step.
func ran(name, op string, from, to int, m apitype.StepEventMetadata) []apitype.EngineEvent {
	m.URN, m.Type, m.Op = urnOf("pkg:index:Thing", name), "pkg:index:Thing", apitype.OpType(op)
	if m.New == nil {
		m.New = &apitype.StepEventStateMetadata{Custom: true, URN: m.URN, Type: m.Type}
	}
	return []apitype.EngineEvent{{Timestamp: at(from), ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: m}},
		{Timestamp: at(to), ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: m}}}
}

func said(seconds int, severity, urn, text string) apitype.EngineEvent {
	return apitype.EngineEvent{Timestamp: at(seconds), DiagnosticEvent: &apitype.DiagnosticEvent{Severity: severity,
		URN:     urn,
		Message: text, Color: "never"}}
}

// stateOf makes a deployment of resources.
func stateOf(t testing.TB, outputs map[string]any, resources ...map[string]any) json.RawMessage {
	t.Helper()
	root := map[string]any{"urn": urnOf("pulumi:pulumi:Stack", "shop-dev"), "type": "pulumi:pulumi:Stack",
		"outputs": outputs}
	text, err := json.Marshal(map[string]any{"resources": append([]map[string]any{root}, resources...)})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func thing(name string, more ...string) map[string]any {
	r := map[string]any{"urn": urnOf("pkg:index:Thing", name), "type": "pkg:index:Thing", "custom": true, "id": "id-" +
		name,
		"parent": urnOf("pulumi:pulumi:Stack", "shop-dev")}
	var on []string
	for _, dependency := range more {
		on = append(on, urnOf("pkg:index:Thing", dependency))
	}
	r["dependencies"] = on
	return r
}

var (
	tags       = regexp.MustCompile(`<(img|script)[^>]*>`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	attributes = regexp.MustCompile(`<[a-z][^<>]* on[a-z]+=`)
)

// harmless reports markup in a page that is not ours.
func harmless(t *testing.T, path, page string) {
	t.Helper()
	for _, tag := range tags.FindAllString(page, -1) {
		if !strings.HasPrefix(tag, `<script src="/console/script.js" integrity="sha256-`) {
			t.Errorf("%s has %s", path, tag)
		}
	}
	if found := attributes.FindString(quoted.ReplaceAllString(page, `""`)); found != "" || strings.Contains(page,
		`href="javascript:`) ||
		strings.Contains(page, "alert(1)</script>") {
		t.Errorf("%s has markup of others: %s", path, found)
	}
}

func TestTextsOfOthersAreNoMarkup(t *testing.T) {
	b := newBench(t)
	changes := apitype.StepEventMetadata{
		Old:          &apitype.StepEventStateMetadata{Custom: true, Inputs: map[string]any{hostile: hostile + "1"}},
		New:          &apitype.StepEventStateMetadata{Custom: true, Inputs: map[string]any{hostile: hostile + "2"}},
		DetailedDiff: map[string]apitype.PropertyDiff{`["` + hostile + `"]`: {Kind: apitype.DiffUpdate, InputDiff: true}}}
	events := append(ran(hostile, "update", 1, 2, changes), said(1, "error", urnOf("pkg:index:Thing", hostile), hostile),
		said(1, "info", "", hostile), apitype.EngineEvent{Timestamp: at(1), PolicyEvent: &apitype.PolicyEvent{
			ResourceURN: hostile, Message: hostile, PolicyName: hostile, PolicyPackName: hostile, PolicyPackVersion: hostile,
			EnforcementLevel: hostile}})
	b.succeeded("1", events...)
	info := b.service.infos["1"]
	info.Message, info.Error, info.Initiator, info.Status = hostile, hostile, hostile, deployments.StatusFailed
	info.Profile = &deployments.ProfileVersion{Name: hostile}
	b.service.infos["1"] = info
	info.Update = deployments.UpdateName{StackName: dev, Version: "1"}
	b.service.history = []deployments.UpdateInfo{info}
	info.Status, info.Waiting = deployments.StatusRunning, []string{hostile}
	b.service.ongoing = []deployments.UpdateInfo{info}
	b.service.drift = &deployments.Drift{At: began, Resources: []deployments.DriftedResource{{URN: hostile,
		Properties: []deployments.DriftedProperty{{Path: hostile, Expected: hostile, Actual: hostile}}}}}
	if err := b.store.TagStack(t.Context(), dev, map[string]string{"owner": "<b>ann</b>"}); err != nil {
		t.Fatal(err)
	}
	resource := thing(hostile)
	resource["id"], resource["initErrors"] = hostile, []string{hostile}
	resource["inputs"] = map[string]any{hostile: []any{hostile}}
	b.service.version, b.service.deployment = 1, stateOf(t, map[string]any{hostile: hostile, "text": hostile,
		"trap": "javascript:alert(1)"}, resource)
	viewer := b.login("viewer")
	all := append([]string{"/console/", resourceURL(dev, "urn:pulumi:dev::shop::pkg:index:Thing::"+hostile),
		"/console/acme/shop/dev/graph?find=%3Cscript%3E",
		"/console/acme/shop/dev/resources?find=%3Cscript%3Ealert(1)%3C/script%3E",
		"/console/acme/shop/dev/updates/1?all=1"}, paths...)
	for _, path := range all {
		harmless(t, path, b.shows(http.StatusOK, path, viewer))
	}
	for _, path := range []string{"/console/login?to=/console/%22%3E" + "%3Cscript%3Ealert(1)%3C/script%3E",
		"/console/" + "%3Cscript%3Ealert(1)%3C%2Fscript%3E"} {
		_, page, _ := b.do(http.MethodGet, path, "", nil)
		harmless(t, path, page)
	}
}

func TestSecretsAreInNoPage(t *testing.T) {
	b := newBench(t)
	secret := map[string]any{"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
		"ciphertext": "v1:sealed-text"}
	one := thing("one")
	one["inputs"], one["outputs"] = map[string]any{"password": secret}, map[string]any{"list": []any{"open", secret}}
	b.service.version, b.service.deployment = 1, stateOf(t, map[string]any{"password": secret,
		"deep": map[string]any{"in": secret}}, one)
	viewer := b.login("admin")
	for _, path := range []string{"/console/acme/shop/dev/outputs", resourceURL(dev,
		"urn:pulumi:dev::shop::pkg:index:Thing::one"),
		"/console/acme/shop/dev/resources", "/console/acme/shop/dev/graph"} {
		page := b.shows(http.StatusOK, path, viewer)
		if strings.Contains(page, "sealed-text") || strings.Contains(page, "ciphertext") {
			t.Errorf("%s has a secret: %s", path, page)
		}
		if strings.Contains(path, "s/dev/outputs") && strings.Count(page, "[secret]") != 2 {
			t.Errorf("%s shows %s", path, page)
		}
	}
}

func TestAnAddressIsALinkOnlyIfItLeadsToThePlainWeb(t *testing.T) {
	for text, want := range map[string]bool{"https://shop.example/a?b=c#d": true, "http://127.0.0.1:9000/x": true,
		"javascript:alert(1)": false, "data:text/html,x": false, "//evil.example": false, "/console/logout": false,
		"https://ann:secret@evil.example": false, "https://shop.example\n": false, "ftp://x/": false, "https:///x": false,
		"HTTPS://shop.example": true, "https://\u202eexample": false, "": false, " https://shop.example": false} {
		if got := web(text) != ""; got != want {
			t.Errorf("%q is a link: %t", text, got)
		}
	}
}

func TestAnUpdateShowsItsStepsItsDiffItsCriticalPathAndItsRestarts(t *testing.T) {
	b := newBench(t)
	diff := apitype.StepEventMetadata{Old: &apitype.StepEventStateMetadata{Custom: true,
		Inputs: map[string]any{"size": "small", "pw": "[secret]"}},
		New: &apitype.StepEventStateMetadata{Custom: true, Inputs: map[string]any{"size": "large",
			"pw": "[secret]"}},
		DetailedDiff: map[string]apitype.PropertyDiff{"size": {Kind: apitype.DiffUpdate, InputDiff: true}}}
	var events []apitype.EngineEvent
	for _, step := range [][]apitype.EngineEvent{ran("network", "create", 0, 10, apitype.StepEventMetadata{}),
		ran("assets", "create", 0, 3, apitype.StepEventMetadata{}), ran("database", "update", 10, 40, diff),
		ran("cache", "create", 10, 12, apitype.StepEventMetadata{}), ran("api", "create", 40, 60,
			apitype.StepEventMetadata{}),
		ran("idle", "same", 60, 60, apitype.StepEventMetadata{}),
		{said(20, "info", "", "info: The program starts again, because its process or its worker was lost.\n")}} {
		events = append(events, step...)
	}
	b.succeeded("1", events...)
	page := b.shows(http.StatusOK, "/console/acme/shop/dev/updates/1", b.login("viewer"))
	if critical := criticalIn(page); strings.Join(critical, " ") != "network database api" {
		t.Errorf("these are critical: %q", critical)
	}
	for _, text := range []string{"1 change of database", ">size<", "small", "large", "After 20 s the program", "10 s",
		"30 s",
		`href="https://temporal.example/namespaces/default/workflows/update%2Facme%2Fshop%2Fdev%2F1"`,
		"<p>5 done.", "1 resource to which nothing happens is not listed"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not have %q: %s", text, page)
		}
	}
}

func TestTheCriticalPathFollowsWhatStepsWaitedFor(t *testing.T) {
	b := newBench(t)
	var events []apitype.EngineEvent
	for _, step := range [][]apitype.EngineEvent{ran("network", "create", 1, 3, apitype.StepEventMetadata{}),
		ran("assets", "create", 0, 3, apitype.StepEventMetadata{}), ran("database", "create", 3, 7,
			apitype.StepEventMetadata{}),
		ran("cache", "create", 3, 7, apitype.StepEventMetadata{}), ran("api", "create", 7, 8, apitype.StepEventMetadata{}),
		ran("instant", "create", 8, 8, apitype.StepEventMetadata{}), ran("old", "delete", 8, 9, apitype.StepEventMetadata{
			Old: &apitype.StepEventStateMetadata{Custom: true}})} {
		events = append(events, step...)
	}
	b.service.version, b.service.deployment = 1, stateOf(t, nil, thing("network"), thing("assets"), thing("database",
		"network"),
		thing("cache", "assets"), thing("api", "database"), thing("instant", "api"))
	viewer := b.login("viewer")
	for version, want := range map[string]string{"1": "network database api old", "p-1": "assets database api old"} {
		b.succeeded(version, events...)
		for range 2 {
			page := b.shows(http.StatusOK, "/console/acme/shop/dev/updates/"+version, viewer)
			if got := strings.Join(criticalIn(page), " "); got != want {
				t.Errorf("of %s these are critical: %s", version, got)
			}
		}
	}
	if e := b.audit.entries; len(e) != 1 || e[0].Method != "Stacks/Export" || e[0].Subject != "version=1" {
		t.Errorf("the audit log has %+v", e)
	}
}

// criticalIn returns the names of the steps of a page that are on the critical path.
func criticalIn(page string) (names []string) {
	for _, row := range criticalRows.FindAllStringSubmatch(page, -1) {
		names = append(names, row[1])
	}
	return names
}

var criticalRows = regexp.MustCompile(`<tr class="critical"><th scope="row"><a href="[^"]*">(\w+)</a>`)

func TestPagesOfALargeStackAreSmallAndQuick(t *testing.T) {
	const count = 10_000
	b := newBench(t)
	var resources []map[string]any
	var events []apitype.EngineEvent
	for i := range count {
		name := fmt.Sprintf("thing-%05d", i)
		r := thing(name, fmt.Sprintf("thing-%05d", max(0, i-1)), "thing-00000")
		r["inputs"] = map[string]any{"text": strings.Repeat("x", 200)}
		resources = append(resources, r)
		events = append(events, ran(name, "create", i/100, i/100+1, apitype.StepEventMetadata{})...)
		events = append(events, said(i/100, "info", urnOf("pkg:index:Thing", name), strings.Repeat("said ", 20)))
		if i < 3000 {
			b.service.history = append(b.service.history, deployments.UpdateInfo{Update: deployments.UpdateName{StackName: dev,
				Version: fmt.Sprint(count - i)}, Message: strings.Repeat("m", 1000)})
		}
	}
	b.service.version, b.service.deployment = 1, stateOf(t, nil, resources...)
	b.succeeded("1", events...)
	viewer := b.login("viewer")
	for _, path := range append([]string{"/console/acme/shop/dev/resources?page=100",
		"/console/acme/shop/dev/updates/1?page=100",
		"/console/acme/shop/dev/updates/1/log?page=20", "/console/acme/shop/dev/graph?find=thing-00000",
		resourceURL(dev, "urn:pulumi:dev::shop::pkg:index:Thing::thing-00000")}, paths...) {
		began := time.Now()
		page := b.shows(http.StatusOK, path, viewer)
		t.Logf("%s has %d KiB and took %s", path, len(page)>>10, time.Since(began))
		if len(page) > 1<<20 {
			t.Errorf("%s has %d bytes", path, len(page))
		}
	}
	if page := b.shows(http.StatusOK, "/console/acme/shop/dev/resources?page=100", viewer); !strings.Contains(page,
		">thing-09998<") ||
		!strings.Contains(page, `rel="next"`) {
		t.Error("the hundredth page is not that")
	}
	if page := b.shows(http.StatusOK, "/console/acme/shop/dev/resources?find=THING-0042&page=1",
		viewer); strings.Count(page, "<tr>") != 11 {
		t.Errorf("10 resources are found in %d rows", strings.Count(page, "<tr>"))
	}
	for _, path := range []string{"/resources?page=0", "/resources?page=x", "/updates?page=-1", "/updates/1?page=1.5"} {
		b.shows(http.StatusBadRequest, "/console/acme/shop/dev"+path, viewer)
	}
	b.shows(http.StatusOK, "/console/acme/shop/dev/updates?page=99999999999999999999", viewer)
}

func TestAPreviewIsFoundByTheIDThatTheStockCLINames(t *testing.T) {
	b := newBench(t)
	b.succeeded("p-0123456789abcdef")
	viewer := b.login("viewer")
	_, _, header := b.do(http.MethodGet, "/console/acme/shop/dev/previews/0123456789abcdef", viewer, nil)
	page := b.shows(http.StatusOK, header.Get("Location"), viewer)
	if !strings.Contains(page, "<h1>Preview 01234567 of shop/dev</h1>") {
		t.Errorf("at %q is %s", header.Get("Location"), page)
	}
	for _, version := range []string{"p-", "x", "..", "p-" + strings.Repeat("a", 300)} {
		if status, said, _ := b.do(http.MethodGet, "/console/acme/shop/dev/updates/"+version, viewer, nil); status < 400 ||
			status >= 500 {
			t.Errorf("%q is answered %d: %s", version, status, said)
		}
	}
}
