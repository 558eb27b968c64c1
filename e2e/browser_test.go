package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// page is a page in a headless Chromium, which is spoken to over pipes in the DevTools protocol.
type page struct {
	to      io.Writer
	from    *bufio.Reader
	session string
	last    int
}

// openPage opens a URL. Without chromium on PATH (Debian: apt-get install chromium) the test is skipped.
func openPage(t *testing.T, url string) *page {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium on PATH")
	}
	theirs, to, err := os.Pipe()
	must(t, err)
	from, answers, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
		"--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{theirs, answers} // 3 and 4
	must(t, cmd.Start())
	must(t, theirs.Close())
	must(t, answers.Close())
	t.Cleanup(func() {
		_ = to.Close() // which ends it
		_ = cmd.Wait()
	})
	p := &page{to: to, from: bufio.NewReader(from)}
	var target struct{ TargetID string }
	p.call(t, "Target.createTarget", map[string]any{"url": url}, &target)
	var attached struct{ SessionID string }
	p.call(t, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p.session = attached.SessionID
	return p
}

// call makes one call, which must succeed.
func (p *page) call(t *testing.T, method string, params, result any) {
	t.Helper()
	if failure := p.try(t, method, params, result); failure != "" {
		t.Fatalf("%s: %s", method, failure)
	}
}

// try makes one call, waits for its result, and gives the browser's message when it fails; events in between are
// nobody's.
func (p *page) try(t *testing.T, method string, params, result any) (failure string) {
	t.Helper()
	p.last++
	message, err := json.Marshal(map[string]any{"id": p.last, "method": method, "params": params,
		"sessionId": p.session})
	must(t, err)
	_, err = p.to.Write(append(message, 0))
	must(t, err)
	for {
		text, err := p.from.ReadBytes(0)
		must(t, err)
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		must(t, json.Unmarshal(text[:len(text)-1], &answer))
		switch {
		case answer.ID != p.last:
		case answer.Error != nil:
			return answer.Error.Message
		default:
			must(t, json.Unmarshal(answer.Result, result))
			return ""
		}
	}
}

// text is what a JavaScript expression gives, "" while it fails: a page that goes to another one meanwhile ends the
// evaluation.
func (p *page) text(t *testing.T, expression string) string {
	t.Helper()
	var got struct {
		Result struct{ Value any }
	}
	failure := p.try(t, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &got)
	if failure != "" || got.Result.Value == nil {
		return ""
	}
	return fmt.Sprint(got.Result.Value)
}
