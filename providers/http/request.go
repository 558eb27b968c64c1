package http

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/provider"
)

const (
	maxBody    = 8 << 20 // bytes of an answer
	maxMessage = 600     // bytes of an answer in an error
	maxDelay   = time.Hour
)

// answer is what a server says.
type answer struct {
	code   int
	header http.Header
	data   []byte
}

// ask sends a request. An error is one of the connection; what a code means is for the caller to say.
func (s *session) ask(ctx context.Context, r Request, url string, body any) (answer, error) {
	what := s.redact(r.Method + " " + url)
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return answer{}, fmt.Errorf("%s: the body is no JSON: %w", what, err)
		}
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, url, content)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %s", what, s.redact(err.Error()))
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, headers := range []map[string]string{s.headers, r.Headers} {
		for name, value := range headers {
			req.Header.Set(name, value)
		}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, s.unanswered(ctx, what, r.Method, err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return answer{}, s.unanswered(ctx, what, r.Method, err)
	}
	if len(data) > maxBody {
		err := fmt.Errorf("%s: the answer is larger than %d MiB", what, maxBody>>20)
		return answer{}, unlessReading(r.Method, err, err)
	}
	return answer{resp.StatusCode, resp.Header, data}, nil
}

// unanswered says what it means that there is no answer.
func (s *session) unanswered(ctx context.Context, what, method string, err error) error {
	var (
		dial        *net.OpError
		certificate *tls.CertificateVerificationError
	)
	failed := fmt.Errorf("%s: %s", what, s.redact(err.Error()))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case errors.As(err, &certificate):
		return failed
	case errors.As(err, &dial) && dial.Op == "dial":
		return &provider.NotDone{Err: failed}
	}
	return unlessReading(method, &provider.NotDone{Err: failed}, failed)
}

// unlessReading returns an error of a request that changes nothing, and of all others that it may have had its effect.
func unlessReading(method string, reading, changing error) error {
	if method == http.MethodGet {
		return reading
	}
	return &provider.Unknown{Err: changing}
}

// refused says what an answer means that is neither success nor expected otherwise.
func (s *session) refused(r Request, url string, a answer) error {
	said := s.redact(strings.Join(strings.Fields(strings.ToValidUTF8(string(a.data), "?")), " "))
	if len(said) > maxMessage {
		said = strings.ToValidUTF8(said[:maxMessage], "") + " …"
	}
	if said != "" {
		said = ": " + said
	}
	err := fmt.Errorf("%s answers %d %s%s%s", s.redact(r.Method+" "+url), a.code, http.StatusText(a.code), said,
		advice(a.code))
	delay, asked := a.delay()
	switch {
	case a.code == http.StatusTooManyRequests, a.code == http.StatusPreconditionFailed,
		a.code == http.StatusServiceUnavailable && asked:
		return &provider.NotDone{Err: err, RetryAfter: delay}
	case a.code == http.StatusInternalServerError, a.code == http.StatusBadGateway,
		a.code == http.StatusServiceUnavailable, a.code == http.StatusGatewayTimeout,
		a.code == http.StatusRequestTimeout, a.code == http.StatusSeeOther && r.Method != http.MethodGet:
		return unlessReading(r.Method, &provider.NotDone{Err: err, RetryAfter: delay}, err)
	}
	return err
}

// advice says what to do about a code that does not pass by itself.
func advice(code int) string {
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return "; see whether the headers have credentials that may do this"
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return "; see whether the endpoint, the path and the method are those of the API"
	case code >= 300 && code < 400:
		return "; redirects are followed only by reading requests, to the same server: give the endpoint that it leads to"
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests:
		return "; correct the properties or the request, and run the update again"
	}
	return ""
}

// delay is the wait that the server asks for, in seconds or until a time.
func (a answer) delay() (time.Duration, bool) {
	header := a.header.Get("Retry-After")
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return min(time.Duration(min(seconds, int(maxDelay/time.Second)))*time.Second, maxDelay), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(time.Until(at), 0), maxDelay), true
	}
	return 0, false
}

// json returns what the answer says, nil if it is empty.
func (a answer) json() (any, error) {
	if len(bytes.TrimSpace(a.data)) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(a.data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, errors.New("the answer is no JSON")
	}
	return value, nil
}

// means of codes, as declared.
func (s *session) success(code int) bool {
	if e := s.in.Expect.V; e != nil && len(e.Success) > 0 {
		return slices.Contains(e.Success, code)
	}
	return code >= 200 && code < 300
}

func (s *session) gone(code int) bool {
	if e := s.in.Expect.V; e != nil && len(e.Gone) > 0 {
		return slices.Contains(e.Gone, code)
	}
	return code == http.StatusNotFound || code == http.StatusGone
}

func (s *session) exists(code int) bool {
	if e := s.in.Expect.V; e != nil && len(e.Exists) > 0 {
		return slices.Contains(e.Exists, code)
	}
	return code == http.StatusConflict || code == http.StatusPreconditionFailed
}
