package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/seal"
	"github.com/deployctl/deployctl/worker"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

const (
	// purposeLinks is the purpose of the key that signs links and cookies of the codec endpoint.
	purposeLinks = "codec links"
	// linkLife is how long a link can be opened.
	linkLife = 10 * time.Minute
	// codecCookie tells a browser that has opened a link.
	codecCookie = "deployctl_codec"
)

// codecEndpoint opens sealed payloads for the Web UI in the browser of whoever came by a link. Summaries, details and
// failures are opened; what may hold values is only said to be sealed, so that no secret is ever shown.
type codecEndpoint struct {
	address, ui string // host:port and URL
	key         []byte
	decode      http.Handler

	mu   sync.Mutex
	used map[string]bool // links that were opened
}

func newCodecEndpoint(s devserver.Status, keys devserver.Keys) (*codecEndpoint, error) {
	sealing, err := worker.NewCodec(keys.Master)
	if err != nil {
		return nil, err
	}
	key, err := linkKey(keys)
	return &codecEndpoint{
		address: s.CodecAddress, ui: s.UIURL, key: key, used: map[string]bool{},
		decode: converter.NewPayloadCodecHTTPHandler(blinding{sealing}),
	}, err
}

func linkKey(keys devserver.Keys) ([]byte, error) {
	ring, err := seal.NewKeyring(keys.Master)
	if err != nil {
		return nil, err
	}
	return ring.Key(purposeLinks), nil
}

// webUILink makes a link to the Web UI that opens payloads there: it works once, within minutes. Without the home's keys
// it is the Web UI's own address.
func webUILink(s devserver.Status) string {
	keys, err := devserver.ReadKeys(s.Home)
	if err != nil {
		return s.UIURL
	}
	key, err := linkKey(keys)
	if err != nil {
		return s.UIURL
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	text := strconv.FormatInt(time.Now().Add(linkLife).Unix(), 10) + "." + hex.EncodeToString(random)
	return "http://" + s.CodecAddress + "/open?link=" + url.QueryEscape(text+"."+sign(key, text))
}

func sign(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// serve answers until ctx ends.
func (e *codecEndpoint) serve(ctx context.Context) error {
	listener, err := net.Listen("tcp", e.address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (e *codecEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host != e.address { // a name that somebody else has pointed here
		http.Error(w, "unknown host", http.StatusMisdirectedRequest)
		return
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/open":
		e.open(w, r)
	case r.URL.Path == "/decode" && r.Header.Get("Origin") == e.ui:
		head := w.Header()
		head.Set("Access-Control-Allow-Origin", e.ui)
		head.Set("Access-Control-Allow-Credentials", "true")
		head.Set("Vary", "Origin")
		if r.Method == http.MethodOptions {
			head.Set("Access-Control-Allow-Methods", http.MethodPost)
			head.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			return
		}
		if cookie, err := r.Cookie(codecCookie); err != nil || !hmac.Equal([]byte(cookie.Value), []byte(e.session())) {
			http.Error(w, "open the Web UI by the link of `deployctl dev status`", http.StatusUnauthorized)
			return
		}
		e.decode.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (e *codecEndpoint) session() string { return sign(e.key, "session") }

// open lets the browser in that has a link, and sends it to the Web UI, to the page that "to" names.
func (e *codecEndpoint) open(w http.ResponseWriter, r *http.Request) {
	if !e.accept(r.URL.Query().Get("link")) {
		http.Error(w, "this link has been used, or is too old; `deployctl dev status` prints another", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // plain HTTP, on loopback
		Name: codecCookie, Value: e.session(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	to := r.URL.Query().Get("to")
	if !strings.HasPrefix(to, "/") {
		to = "/"
	}
	http.Redirect(w, r, e.ui+to, http.StatusSeeOther)
}

// accept says whether the link is ours, young, and new.
func (e *codecEndpoint) accept(link string) bool {
	at := strings.LastIndex(link, ".")
	if at < 0 || !hmac.Equal([]byte(link[at+1:]), []byte(sign(e.key, link[:at]))) {
		return false
	}
	until, _, _ := strings.Cut(link, ".")
	expiry, err := strconv.ParseInt(until, 10, 64)
	if err != nil || time.Now().Unix() > expiry {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.used[link] {
		return false
	}
	e.used[link] = true
	return true
}

// blinding opens what is text for people and blinds everything else.
type blinding struct{ converter.PayloadCodec }

var blinded = &commonpb.Payload{
	Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(`"[sealed]"`),
}

func (b blinding) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	opened := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		one, err := b.PayloadCodec.Decode([]*commonpb.Payload{p})
		switch {
		case err != nil: // somebody else's: as it is
			opened[i] = p
		case forPeople(one[0]):
			opened[i] = one[0]
		default:
			opened[i] = blinded
		}
	}
	return opened, nil
}

// forPeople says whether a payload is a summary, details, a table of progress, or what a failure says.
func forPeople(p *commonpb.Payload) bool {
	data := p.GetData()
	return string(p.GetMetadata()[converter.MetadataMessageType]) == "temporal.api.sdk.v1.WorkflowMetadata" ||
		bytes.HasPrefix(data, []byte(`"`)) ||
		bytes.HasPrefix(data, []byte(`{"message":`)) && bytes.Contains(data, []byte(`"stack_trace":`))
}
