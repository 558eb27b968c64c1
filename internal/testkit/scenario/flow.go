package scenario

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"gopkg.in/yaml.v3"
)

// repeat plays its steps again and again, with {{i}} in them counting from From.
type repeat struct {
	Times string      `yaml:"repeat"`
	From  int         `yaml:"from"`
	Steps []yaml.Node `yaml:"steps"`
}

func (r *repeat) play(p *player) error {
	text, err := p.text(r.Times)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("repeat: %w", err)
	}
	for i := range n {
		round := make([]yaml.Node, len(r.Steps))
		for j, node := range r.Steps {
			round[j] = at(node, r.From+i)
		}
		if err := p.play(round); err != nil {
			return err
		}
	}
	return nil
}

// parallel plays its steps at the same time and is done when all are.
type parallel struct {
	Steps []yaml.Node `yaml:"parallel"`
}

func (a *parallel) play(p *player) error {
	results := make(chan error)
	for i := range a.Steps {
		go func() { results <- p.step(&a.Steps[i]) }()
	}
	var all []error
	for range a.Steps {
		all = append(all, <-results)
	}
	return errors.Join(all...)
}

// await waits for the steps named, or for everything started so far when it names none.
type await struct {
	Names []string `yaml:"await"`
}

func (a *await) play(p *player) error {
	if len(a.Names) == 0 {
		p.started.Wait()
		return p.failed()
	}
	for _, name := range a.Names {
		if _, err := p.await(name); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for a file, for a URL to answer 200, or for some time.
type wait struct {
	For struct {
		File string `yaml:"file"`
		URL  string `yaml:"url"`
		MS   int    `yaml:"ms"`
	} `yaml:"wait"`
}

func (w *wait) play(p *player) error {
	file, err := p.text(w.For.File)
	if err != nil {
		return err
	}
	url, err := p.text(w.For.URL)
	if err != nil {
		return err
	}
	var arrived func() bool
	switch {
	case file != "":
		arrived = func() bool { _, err := os.Stat(p.file(file)); return err == nil }
	case url != "":
		arrived = func() bool { return p.answers(url) }
	default:
		return p.sleep(time.Duration(w.For.MS) * time.Millisecond)
	}
	for !arrived() {
		if err := p.sleep(10 * time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) answers(url string) bool {
	req, err := http.NewRequestWithContext(p.ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

func (p *player) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// touch makes a file, so that a test sees how far the program has come.
type touch struct {
	Path string `yaml:"touch"`
}

func (t *touch) play(p *player) error {
	path, err := p.text(t.Path)
	if err != nil {
		return err
	}
	return os.WriteFile(p.file(path), nil, 0o600)
}

// printed prints a line to stdout or stderr.
type printed struct {
	Text string `yaml:"print"`
	To   string `yaml:"to"`
}

func (o *printed) play(p *player) error {
	text, err := p.shown(o.Text)
	if err != nil {
		return err
	}
	if o.To == "stderr" {
		_, err = fmt.Fprintln(os.Stderr, text)
	} else {
		_, err = fmt.Println(text)
	}
	return err
}

// logged sends the engine a message.
type logged struct {
	Message   string `yaml:"log"`
	Severity  string `yaml:"severity"` // debug, info (the default), warning or error
	Resource  string `yaml:"resource"`
	Ephemeral bool   `yaml:"ephemeral"`
}

func (l *logged) play(p *player) error {
	message, err := p.shown(l.Message)
	if err != nil {
		return err
	}
	req := &rpc.LogRequest{Message: message, Severity: rpc.LogSeverity_INFO, Ephemeral: l.Ephemeral}
	if l.Severity != "" {
		severities := map[string]rpc.LogSeverity{
			"debug": rpc.LogSeverity_DEBUG, "info": rpc.LogSeverity_INFO,
			"warning": rpc.LogSeverity_WARNING, "error": rpc.LogSeverity_ERROR}
		severity, known := severities[l.Severity]
		if !known {
			return fmt.Errorf("unknown severity %q", l.Severity)
		}
		req.Severity = severity
	}
	if l.Resource != "" {
		if req.Urn, err = p.urn(l.Resource); err != nil {
			return err
		}
	}
	_, err = p.engine.Log(p.ctx, req)
	return err
}

// shown is a text for people: what is not known yet shows as such.
func (p *player) shown(s string) (string, error) {
	text, err := p.text(s)
	if errors.Is(err, errUnknown) {
		return s, nil
	}
	return text, err
}

// assert fails the program unless a condition holds. What is not known yet, in a preview, passes.
type assert struct {
	Condition string `yaml:"assert"`
}

func (a *assert) play(p *player) error {
	holds, err := p.holds(a.Condition)
	switch {
	case errors.Is(err, errUnknown):
		return nil
	case err != nil:
		return err
	case !holds:
		left, _ := p.shown(a.Condition) // was evaluated just now
		return fmt.Errorf("assertion failed: %s (%s)", a.Condition, left)
	}
	return nil
}

// ended is how a script ends the program before its last step.
type ended struct {
	bail  bool // the error has been reported to the engine
	error string
}

func (e *ended) Error() string { return e.error }

// fail ends the program as one does that has reported its error to the engine.
type fail struct {
	Message string `yaml:"fail"`
}

func (f *fail) play(p *player) error {
	message, err := p.shown(f.Message)
	if err != nil {
		return err
	}
	if _, err := p.engine.Log(p.ctx, &rpc.LogRequest{Message: message, Severity: rpc.LogSeverity_ERROR}); err != nil {
		return err
	}
	return &ended{bail: true, error: message}
}

// throw ends the program as an exception does that nobody catches.
type throw struct {
	Message string `yaml:"throw"`
}

func (t *throw) play(p *player) error {
	message, err := p.shown(t.Message)
	if err != nil {
		return err
	}
	return &ended{error: "the program threw: " + message}
}

// exit ends the program at once with a code; what is under way is left to itself.
type exit struct {
	Code int `yaml:"exit"`
}

func (e *exit) play(*player) error {
	if e.Code == 0 {
		return &ended{}
	}
	return &ended{error: fmt.Sprintf("the program exited with code %d", e.Code)}
}

// hang stops until the engine ends the program.
type hang struct {
	Hang bool `yaml:"hang"`
}

func (h *hang) play(p *player) error {
	if h.Hang {
		<-p.ctx.Done()
	}
	return p.ctx.Err()
}

// kill kills the host's process, as kill -9 does.
type kill struct {
	Kill bool `yaml:"kill"`
}

func (k *kill) play(p *player) error {
	if !k.Kill {
		return nil
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	<-p.ctx.Done()
	return p.ctx.Err()
}
