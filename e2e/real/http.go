package real

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// late is how long a late answer takes.
const late = 2 * time.Second

// HTTP is a proxy before a server that speaks HTTP.
type HTTP struct {
	URL string

	server *httptest.Server
	target *url.URL
	faults *Faults
}

// NewHTTP starts a proxy on a loopback port.
func NewHTTP(target string, faults *Faults) (*HTTP, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	p := &HTTP{target: u, faults: faults}
	p.server = httptest.NewServer(p)
	p.URL = p.server.URL
	return p, nil
}

// Close stops it.
func (p *HTTP) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// ServeHTTP implements http.Handler.
func (p *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	kind := Fine
	if call, changes := callOf(r, body); changes {
		kind = p.faults.Of(call)
	}
	if kind == Refused {
		panic(http.ErrAbortHandler)
	}
	status, header, answer, err := p.forward(r, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if status < 300 { // what the server rejects has no effect
		switch kind {
		case PluginKilled, ServiceKilled:
			p.faults.Kill(kind)
			panic(http.ErrAbortHandler)
		case Cut:
			panic(http.ErrAbortHandler)
		case Error:
			status, header = http.StatusInternalServerError, http.Header{"Content-Type": {"text/plain"}}
			answer = []byte("an internal error occurred")
		case Late:
			time.Sleep(late)
		}
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// forward sends the request as it is, so that its signature stays valid, and reads the whole answer.
func (p *HTTP) forward(r *http.Request, body []byte) (int, http.Header, []byte, error) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.target.String()+r.URL.RequestURI(),
		bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	out.Header, out.Host = r.Header.Clone(), r.Host
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if r.Method == http.MethodHead {
		return res.StatusCode, res.Header, nil, err
	}
	return res.StatusCode, res.Header, answer, err
}

var (
	// reading begins the names of operations of AWS that change nothing.
	reading = regexp.MustCompile(`^(Get|List|Describe|Head|Query|Scan|BatchGet|Lookup|Search)`)
	// random are parts of requests that differ in each try.
	random = regexp.MustCompile(`(?i)"?(client-?token|clientRequestToken|idempotencyToken|callerReference)"?[=:]"?[^&",]*`)
)

// callOf tells a request from others by what it asks for, and whether it changes something. AWS has the operation in a
// header or in the form; elsewhere the method says it.
func callOf(r *http.Request, body []byte) (call string, changes bool) {
	operation := r.Header.Get("X-Amz-Target")
	if i := strings.LastIndex(operation, "."); i >= 0 {
		operation = operation[i+1:]
	}
	if form, err := url.ParseQuery(string(body)); operation == "" && err == nil && form.Get("Action") != "" {
		operation = form.Get("Action")
	}
	switch {
	case operation != "":
		changes = !reading.MatchString(operation)
	default:
		operation, changes = r.Method, r.Method != http.MethodGet && r.Method != http.MethodHead
	}
	sum := sha256.Sum256(random.ReplaceAll(body, nil))
	return fmt.Sprintf("%s %s %x", operation, r.URL.RequestURI(), sum[:8]), changes
}
