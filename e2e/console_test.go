package e2e

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// reader is somebody who looks at the console of the embedded service.
type reader struct {
	*http.Client
	base string
}

// reader returns one who is logged in.
func (p *project) reader(t *testing.T) reader {
	t.Helper()
	s := p.status(t)
	r := reader{newBrowser(t), "http://" + s.PulumiAddress}
	res, err := r.PostForm(r.base+"/console/login", url.Values{"token": {read(t, s.PulumiTokenFile)}})
	must(t, err)
	must(t, res.Body.Close())
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		t.Fatalf("the login is answered %s", res.Status)
	}
	return r
}

// get returns a page, which must be answered with a status.
func (r reader) get(t *testing.T, status int, path string) string {
	t.Helper()
	res, err := r.Get(r.base + path)
	must(t, err)
	text, err := io.ReadAll(res.Body)
	must(t, err)
	must(t, res.Body.Close())
	if res.StatusCode != status {
		t.Fatalf("%s is answered %s: %s", path, res.Status, text)
	}
	if policy := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") {
		t.Errorf("%s has the policy %q", path, policy)
	}
	return string(text)
}

var consoleLinks = regexp.MustCompile(`(?:href|src)="(/console/[^"#]*)"`)

// visit gets all pages to which a page leads, and those to which they lead, and returns them by their paths.
func (r reader) visit(t *testing.T, from string) map[string]string {
	t.Helper()
	pages, next := map[string]string{}, []string{from}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		if _, seen := pages[path]; seen {
			continue
		}
		pages[path] = r.get(t, http.StatusOK, path)
		for _, found := range consoleLinks.FindAllStringSubmatch(pages[path], -1) {
			next = append(next, strings.ReplaceAll(found[1], "&amp;", "&"))
		}
	}
	return pages
}

// TestTheConsoleShowsAnUpdateWhileItRunsAndAllOfItsStackAfterwards follows every link of the console.
func TestTheConsoleShowsAnUpdateWhileItRunsAndAllOfItsStackAfterwards(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newStage(t, h)
	s.write(t, "scenario.yaml", strings.Replace(layers, "outputs:\n",
		"outputs:\n  password: !secret needle-of-the-console\n"+
			"  page: https://shop.example/\n", 1))
	g := s.gate(t, "auto-2", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview", "--message", "<b>bold</b>")
	must(t, g.Wait(waiting(t)))
	r := s.reader(t)
	stack := "/console/organization/" + projectName(t) + "/dev"
	eventually(t, "the page of the update shows the step that runs", func() bool {
		page := r.get(t, http.StatusOK, stack+"/updates/1")
		return strings.Contains(page, `data-refresh="`) && strings.Contains(page, ">auto-2<") &&
			strings.Contains(page, `<span class="status runs">runs</span>`)
	})
	home := r.get(t, http.StatusOK, "/console/")
	if !strings.Contains(home, ">organization/"+projectName(t)+"/dev up 1</a>") {
		t.Errorf("the home does not show what runs: %s", home)
	}
	must(t, g.Open(t.Context()))
	up.mustEnd(t, 0)
	eventually(t, "the page of the update shows its end", func() bool {
		return strings.Contains(r.get(t, http.StatusOK, stack+"/updates/1"),
			`<span class="status succeeded">succeeded</span>`)
	})
	pages := r.visit(t, "/console/")
	for _, path := range []string{stack, stack + "/resources", stack + "/graph", stack + "/outputs", stack + "/updates",
		stack + "/updates/1"} {
		if pages[path] == "" {
			t.Errorf("no link leads to %s", path)
		}
	}
	for path, page := range pages {
		if strings.Contains(page, "needle-of-the-console") || strings.Contains(page, "<b>bold") {
			t.Errorf("%s has a secret, or markup of others: %s", path, page)
		}
	}
	if page := pages[stack+"/outputs"]; !strings.Contains(page, "[secret]") || !strings.Contains(page,
		`<a href="https://shop.example/"`) {
		t.Errorf("the outputs are %s", page)
	}
	if page := pages[stack+"/updates/1"]; !strings.Contains(page, `class="critical"`) || !strings.Contains(page,
		"/workflows/update%2Forganization%2F"+projectName(t)+"%2Fdev%2F1") {
		t.Errorf("the update is %s", page)
	}
	res, err := r.Get(r.base + "/organization/" + projectName(t) + "/dev/updates/1") // as the stock CLI prints it
	must(t, err)
	must(t, res.Body.Close())
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != stack+"/updates/1" {
		t.Errorf("the link of the stock CLI leads to %q, with %s", res.Header.Get("Location"), res.Status)
	}
	r.get(t, http.StatusNotFound, "/console/organization/"+projectName(t)+"/gone")
}

// TestTheConsoleSaysThatAProgramWasLostAndTheUpdateWentOn kills the service while a reader looks at an update.
func TestTheConsoleSaysThatAProgramWasLostAndTheUpdateWentOn(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, newHome(t))
	path := "/console/organization/" + projectName(t) + "/dev/updates/1"
	g := s.gate(t, "auto-2", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview")
	must(t, g.Wait(waiting(t)))
	before := s.reader(t)
	before.get(t, http.StatusOK, path)
	s.killService(t)
	s.must(t, "dev", "--background")
	must(t, g.Open(t.Context()))
	up.mustEnd(t, 0)
	after := s.reader(t)
	eventually(t, "the page shows the end and the loss", func() bool {
		page := after.get(t, http.StatusOK, path)
		return strings.Contains(page, `<span class="status succeeded">`) && strings.Contains(page,
			"or its worker, was lost") &&
			strings.Contains(page, `<rect class="lost"`)
	})
	res, err := before.Get(before.base + path)
	must(t, err)
	must(t, res.Body.Close())
	if res.StatusCode != http.StatusSeeOther {
		t.Errorf("a session of before the service's end is answered %s", res.Status)
	}
}

// screenshots is where the pictures of docs/console.md go.
var screenshots = flag.String("screenshots", "", "write the pictures of the console to `DIR`")

// shop is a stack whose update takes a while.
const shop = `name: shop
runtime: yaml
config: {image: {type: string, default: "shop-api:6"}, size: {type: string, default: small}}
resources:
  network: {type: "deployctl:command:Run", properties: {create: "sleep 2; echo net-1"}}
  assets: {type: "deployctl:command:Run", properties: {create: "sleep 3; echo 41 files"}}
  database: {type: "deployctl:command:Run", properties: {create: "sleep 4; echo ${size} db.${network.stdout}",
    update: "sleep 3; echo ${size} db.${network.stdout}"}}
  cache: {type: "deployctl:command:Run", properties: {create: "sleep 1; echo cache.${network.stdout}"}}
  api: {type: "deployctl:command:Run", properties: {
    create: "sleep 2; echo ${image} ${database.stdout} ${cache.stdout}",
    update: "sleep 1; echo no such image: ${image} >&2; exit 3"}}
  worker: {type: "deployctl:command:Run", properties: {create: "sleep 1; echo ${database.stdout}"}}
outputs:
  endpoint: https://shop.example/
  password: {"fn::secret": needle-of-the-console}
`

// TestTheConsoleIsUsedInABrowser logs in, and reads the pages as a person does. With -screenshots it makes the pictures
// of the docs.
func TestTheConsoleIsUsedInABrowser(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := newHome(t)
	p := h.in(t.TempDir())
	p.write(t, "Pulumi.yaml", shop)
	p.must(t, "stack", "init", "dev")
	p.must(t, "up", "--yes", "--skip-preview", "--message", "the first release")
	p.must(t, "config", "set", "image", "shop-api:7")
	p.must(t, "config", "set", "size", "large")
	p.fails(t, 1, []string{"no such image"}, "up", "--yes", "--skip-preview", "--message", "shop-api:7")
	s := p.status(t)
	b := openPage(t, "http://"+s.PulumiAddress+"/organization/shop/dev/updates/2")
	b.await(t, "document.querySelector('#token') !== null && document.activeElement.id", "token")
	b.shoot(t, "login", 900, 340, "dark")
	b.text(t, fmt.Sprintf("document.querySelector('#token').value = %q; document.querySelector('.login').requestSubmit()",
		read(t, s.PulumiTokenFile)))
	b.await(t, "document.querySelector('h1').textContent", "Update 2 of shop/dev")
	b.text(t, "document.querySelector('summary').click()")
	b.shoot(t, "failed", 1000, 900, "light")
	b.goTo(t, "/console/organization/shop/dev/updates/1", "Update 1 of shop/dev")
	b.shoot(t, "update", 1000, 760, "dark")
	b.goTo(t, "/console/", "Overview")
	b.shoot(t, "home", 1000, 500, "light")
	b.goTo(t, "/console/organization/shop/dev/graph", "Graph of shop/dev")
	b.shoot(t, "graph", 1000, 520, "dark")
	for _, path := range []string{"/console/", "/console/organization/shop/dev", "/console/organization/shop/dev/outputs",
		"/console/organization/shop/dev/resources", "/console/organization/shop/dev/updates/2"} {
		b.call(t, "Emulation.setDeviceMetricsOverride", map[string]any{"width": 360, "height": 800, "deviceScaleFactor": 1,
			"mobile": false}, &struct{}{})
		b.goTo(t, path, "")
		if wide := b.text(t, "document.documentElement.scrollWidth > innerWidth"); wide != "false" {
			t.Errorf("%s is wider than a small screen: %s", path, wide)
		}
		if kept := b.text(t, "document.documentElement.innerHTML.includes('needle-of-the-console') || "+
			"document.cookie !== ''"); kept != "false" {
			t.Errorf("%s has a secret, or shows its cookie to scripts: %s", path, kept)
		}
	}
	p.write(t, "Pulumi.yaml", strings.Replace(shop, "exit 3", "exit 0", 1))
	b.goTo(t, "/console/organization/shop/dev/updates", "Updates of shop/dev")
	up := p.start(t, "up", "--yes", "--skip-preview")
	eventually(t, "the update begins", func() bool {
		b.goTo(t, "/console/organization/shop/dev/updates/3", "")
		return b.text(t, "document.querySelector('h1').textContent") == "Update 3 of shop/dev"
	})
	b.text(t, "window.stays = true")
	b.await(t, "document.querySelector('.facts .status').textContent", "succeeded")
	if stays := b.text(t, "window.stays"); stays != "true" {
		t.Error("the page was loaded anew and not changed in its place")
	}
	up.mustEnd(t, 0)
	b.text(t, "document.querySelector('.user').requestSubmit()")
	b.await(t, "document.querySelector('h1').textContent", "Log in")
}

// await waits until an expression has a value.
func (p *page) await(t *testing.T, expression, want string) {
	t.Helper()
	eventually(t, expression+" is "+want, func() bool { return p.text(t, expression) == want })
}

// goTo goes to a path of the same address, and waits for its heading, if one is given.
func (p *page) goTo(t *testing.T, path, heading string) {
	t.Helper()
	p.text(t, fmt.Sprintf("window.left = true; location.assign(%q)", path))
	p.await(t, "window.left === undefined && document.readyState", "complete")
	if heading != "" {
		p.await(t, "document.querySelector('h1').textContent", heading)
	}
}

// shoot makes a picture of the page, if the docs are to have them.
func (p *page) shoot(t *testing.T, name string, width, height int, scheme string) {
	t.Helper()
	p.call(t, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height,
		"deviceScaleFactor": 1, "mobile": false}, &struct{}{})
	p.call(t, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}}}, &struct{}{})
	var shot struct{ Data []byte }
	p.call(t, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	if len(shot.Data) == 0 || len(shot.Data) > 150<<10 {
		t.Errorf("the picture %s has %d bytes", name, len(shot.Data))
	}
	if *screenshots != "" {
		must(t, os.WriteFile(filepath.Join(*screenshots, "console-"+name+".png"), shot.Data, 0o600))
	}
}
