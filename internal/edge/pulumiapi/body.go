package pulumiapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/pack"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Sizes of request bodies, decompressed.
const (
	smallBody = 4 << 20                    // what is not named below
	batchBody = 16 << 20                   // events, journal entries: a client halves a batch that is too large
	stateBody = deployments.MaxClientState // a whole deployment
)

// compressible is the size from which an answer is compressed.
const compressible = 1 << 10

const (
	// freeBody is how much of a body is read without taking memory for it, as most are small.
	freeBody = 16 << 10
	// textTimes is how many copies of a body there are while its text is used, and no values are made of it.
	textTimes = 4
	// mostMembers is how many members a body may have around its large one.
	mostMembers = 100
)

// body returns the decompressed body of a call, of which values are made. Its memory is taken as it arrives, then that
// of the values, and all is given back when the call ends.
func (c *call) body() ([]byte, error) {
	data, err := c.text()
	if err == nil && len(data) > freeBody {
		err = mempool.Take(c.Context(), rawjson.Cost(data))
	}
	if err == nil {
		err = checkEncoding(data)
	}
	return data, err
}

// checkEncoding refuses a body that is not UTF-8: its texts would be read as others.
func checkEncoding(data []byte) error {
	return deployments.CheckUTF8("the body of the request", data)
}

// text returns the decompressed body of a call as body does, with memory for its text alone.
func (c *call) text() ([]byte, error) {
	limit := c.route.limit
	if limit == 0 {
		limit = smallBody
	}
	tooLarge := deployments.TooLarge("the body of the request is larger than %d MiB", limit>>20)
	if c.ContentLength > limit {
		c.drain()
		return nil, tooLarge
	}
	reader, err := c.decompressed(limit)
	if err != nil {
		return nil, err
	}
	pieces, size, err := c.receive(reader, limit)
	var over *http.MaxBytesError
	switch whole := c.memory.Whole(); {
	case errors.As(err, &over) || size > limit:
		c.drain()
		return nil, tooLarge
	case !whole:
		return nil, mempool.ErrBusy
	case c.Context().Err() != nil:
		return nil, c.Context().Err()
	case errors.Is(err, mempool.ErrBusy):
		return nil, err
	case err != nil:
		return nil, deployments.Errorf(deployments.CodeInvalid, "the body of the request cannot be read: %w", err)
	case len(pieces) == 1:
		return pieces[0], nil
	}
	_ = http.NewResponseController(c.answer).SetReadDeadline(time.Time{}) // else what follows ends with it
	if err := mempool.Take(c.Context(), (textTimes-1)*size); err != nil {
		return nil, err
	}
	return slices.Concat(pieces...), nil
}

// What is still read of a body that is too large: a client that writes all of it before it reads the answer would be
// shown a broken connection.
const (
	drained      = 64 << 20
	drainingTime = 5 * time.Second
)

// drain reads, and forgets, the rest of a body.
func (c *call) drain() {
	if c.Header.Get("Expect") != "" { // the client asks before it sends the body
		return
	}
	control := http.NewResponseController(c.answer)
	if control.SetReadDeadline(time.Now().Add(drainingTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.Body, drained) // as much as there is
	}
}

// receive reads a body in pieces, and takes memory for each before it is read. Of a body that is too large it reads
// little more than the limit.
func (c *call) receive(reader io.Reader, limit int64) (pieces [][]byte, size int64, err error) {
	for next, whole := int64(freeBody), false; !whole && size <= limit; {
		if size > 0 {
			if err := mempool.Take(c.Context(), next); err != nil {
				return nil, 0, err
			}
		}
		piece := make([]byte, next)
		n := 0
		if n, whole, err = fill(reader, piece); err != nil {
			return nil, size, err
		}
		pieces, size = append(pieces, piece[:n]), size+int64(n)
		if next = mempool.Step; c.ContentLength >= size && c.Header.Get("Content-Encoding") == "" {
			next = min(next, c.ContentLength-size+1)
		}
	}
	return pieces, size, nil
}

// fill reads until a piece is full, or nothing more comes.
func fill(reader io.Reader, piece []byte) (n int, whole bool, err error) {
	for n < len(piece) && err == nil {
		var more int
		more, err = reader.Read(piece[n:])
		n += more
	}
	if errors.Is(err, io.EOF) {
		return n, true, nil
	}
	return n, false, err
}

// share gives the call a claim to the memory that the organizations share: that of the caller's, or of the lease's; who
// has no token has only what their host has.
func (c *call) share() {
	party := c.party()
	switch c.route.by {
	case byLease:
		party = c.stack.Organization
	case byAnyone, byIdentity:
		party = "host " + grpcapi.Party(c.RemoteAddr)
	}
	c.claim(c.edge.gate.Memory, party, grpcapi.Patience)
}

// party is who pays for what the call uses.
func (c *call) party() string { return c.caller.Party(c.PathValue("org")) }

// claim gives the call a claim of a pool. When that gives way while the body arrives or the answer is sent, these end.
func (c *call) claim(pool *mempool.Pool, party string, patience time.Duration) {
	control := http.NewResponseController(c.answer)
	c.memory = pool.Claim(party, func() {
		if past := time.Unix(1, 0); c.sending.Load() { // where it is not supported, no connection is slow
			_ = control.SetWriteDeadline(past)
		} else {
			_ = control.SetReadDeadline(past)
		}
	})
	c.release = append(c.release, c.memory.Release)
	c.Request = c.WithContext(mempool.With(c.Context(), c.memory, patience))
}

// decompressed returns what reads the decompressed body of a call.
func (c *call) decompressed(limit int64) (io.Reader, error) {
	body := http.MaxBytesReader(c.answer, c.Body, limit)
	switch encoding := c.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return body, nil
	case "gzip":
		reader, err := gzip.NewReader(body)
		if err != nil {
			err = deployments.Errorf(deployments.CodeInvalid, "the body of the request is not gzip: %w", err)
		}
		return reader, err
	default:
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"the body of the request is encoded as %q; use gzip", clean(encoding))
	}
}

// parse reads the body of a call as JSON; an empty one leaves v as it is.
func (c *call) parse(v any) error {
	data, err := c.body()
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return err
	}
	return c.decode(data, v)
}

// decode reads JSON of a call.
func (c *call) decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return c.notNeeded(err)
	}
	return nil
}

// parseAround reads the body of a call as parse does, but for its last member of a name, which it returns as it is.
// However large that is and whatever it is made of, it takes no memory of its own.
func (c *call) parseAround(v any, name string) (json.RawMessage, error) {
	data, err := c.text()
	if err != nil {
		return nil, err
	}
	return c.around(data, v, name)
}

// around parses a text as parseAround does.
func (c *call) around(data []byte, v any, name string) (json.RawMessage, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	if err := checkEncoding(data); err != nil {
		return nil, err
	}
	if !json.Valid(data) {
		return nil, c.decode(data, v)
	}
	rest := map[string]json.RawMessage{}
	size, count := 0, 0
	var member []byte
	for n, value := range rawjson.Members(data) {
		if count++; count > mostMembers {
			return nil, deployments.TooLarge("the body of the request has more than %d members", mostMembers)
		}
		if n == name {
			member = value
			continue
		}
		if size += len(n) + len(value); size > smallBody {
			return nil, deployments.TooLarge("the body of the request has more than %d MiB beside its %s", smallBody>>20, name)
		}
		rest[n] = value
	}
	small, err := json.Marshal(rest)
	if err == nil && size > freeBody {
		err = mempool.Take(c.Context(), rawjson.Cost(small))
	}
	if err != nil {
		return nil, err
	}
	return member, c.decode(small, v)
}

func (c *call) notNeeded(err error) error {
	return deployments.Errorf(deployments.CodeInvalid, "the body of the request is not what %s needs: %w", c.route.path,
		rawjson.Explain(err))
}

// statuses translates codes; others are internal errors.
var statuses = map[deployments.Code]int{
	deployments.CodeInvalid: http.StatusBadRequest, deployments.CodeNotFound: http.StatusNotFound,
	deployments.CodeExists: http.StatusConflict, deployments.CodeConflict: http.StatusConflict,
	deployments.CodeUnauthorized: http.StatusUnauthorized, deployments.CodeForbidden: http.StatusForbidden,
	deployments.CodeUnavailable: http.StatusServiceUnavailable, deployments.CodeNoWorker: http.StatusServiceUnavailable,
	deployments.CodeFormat: http.StatusUnprocessableEntity, deployments.CodeCancelled: http.StatusServiceUnavailable,
	deployments.CodeUnconfirmed: http.StatusBadRequest, deployments.CodeMaintenance: http.StatusServiceUnavailable,
	deployments.CodeQuota: http.StatusPaymentRequired, // of 429, the stock CLI does not print the sentence
}

// translate returns the status and the body of an error. The text of an internal error is for the log only.
func (c *call) translate(err error) (int, apitype.ErrorResponse) {
	code := deployments.CodeOf(err)
	status, known := statuses[code]
	message := err.Error()
	switch {
	case errors.Is(err, deployments.ErrTooLarge):
		status = http.StatusRequestEntityTooLarge
	case !known && c.Context().Err() != nil:
		status = http.StatusServiceUnavailable
	case !known:
		status, message = http.StatusInternalServerError, internalError(c.entry.Request)
	}
	return status, apitype.ErrorResponse{Code: status, Message: message}
}

func internalError(request string) string {
	return "the service failed; its log says why (request " + request + ")"
}

// content is an answer that is not JSON.
type content struct {
	kind string // its Content-Type
	data []byte
}

// inParts is an answer whose JSON is in parts, because some are large.
type inParts interface{ parts() ([][]byte, error) }

// encoded returns the JSON of an answer, in parts.
func encoded(answer any) ([][]byte, error) {
	if large, ok := answer.(inParts); ok {
		return large.parts()
	}
	data, err := json.Marshal(answer)
	return [][]byte{data}, err
}

// write sends an answer: content as it is, or JSON, compressed when the client takes that.
func (c *call) write(status int, answer any) {
	header := c.answer.Header()
	if text, ok := answer.(content); ok {
		header.Set("Content-Type", text.kind)
		c.answer.WriteHeader(status)
		_, _ = c.answer.Write(text.data) // its reader has gone
		return
	}
	if _, ok := answer.(redirect); ok {
		c.answer.WriteHeader(status)
		return
	}
	if answer == nil {
		if status == http.StatusOK {
			status = http.StatusNoContent
		}
		c.answer.WriteHeader(status)
		return
	}
	data, err := encoded(answer)
	if err != nil {
		c.edge.Log.Error("an answer cannot be encoded", "request", c.entry.Request, "error", err)
		c.answer.WriteHeader(http.StatusInternalServerError)
		return
	}
	if c.begun {
		c.finish(status, answer, pack.Whole(data))
		return
	}
	header.Set("Content-Type", "application/json")
	header.Set("Vary", "Accept-Encoding")
	if pack.Size(data) < compressible || !acceptsGzip(c.Header) {
		c.answer.WriteHeader(status)
		c.send(c.answer, data)
		return
	}
	header.Set("Content-Encoding", "gzip")
	c.answer.WriteHeader(status)
	packed, err := gzip.NewWriterLevel(c.answer, gzip.BestSpeed)
	if err == nil {
		c.send(packed, data)
		_ = packed.Close()
	}
}

// send sends data, which is in parts, in pieces, for as long as its reader takes them.
func (c *call) send(to io.Writer, data [][]byte) {
	if c.memory != nil {
		c.sending.Store(true)
		c.memory.Sending()
	}
	for _, part := range data {
		for piece := range slices.Chunk(part, freeBody) {
			if _, err := to.Write(piece); err != nil {
				return // its reader has gone, or was too slow
			}
			if c.memory != nil {
				c.memory.Moved()
			}
		}
	}
}

func acceptsGzip(h http.Header) bool {
	for encoding := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(encoding), ";")
		if name == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
