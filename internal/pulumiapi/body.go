package pulumiapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/grpcapi"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Sizes of request bodies, decompressed.
const (
	smallBody = 4 << 20            // what is not named below
	batchBody = 16 << 20           // events, journal entries: a client halves a batch that is too large
	stateBody = grpcapi.MaxContent // a whole deployment
)

// compressible is the size from which an answer is compressed.
const compressible = 1 << 10

// errTooLarge is the cause of the error about a body that is too large.
var errTooLarge = errors.New("the body is too large")

// unmeasured is how much is read of a body of unknown size before memory is taken for the largest that it may be.
// Journal entries and events come compressed, so their size is not known, and nearly all are smaller.
const unmeasured = 256 << 10

// body returns the decompressed body of a call. The memory of a large one is taken before it is read, and given back
// when the call ends.
func (c *call) body() ([]byte, error) {
	limit := c.route.limit
	if limit == 0 {
		limit = smallBody
	}
	tooLarge := &deployments.Error{Code: deployments.CodeInvalid, Err: errTooLarge, Message: fmt.Sprintf(
		"the body of the request is larger than %d MiB", limit>>20)}
	if c.ContentLength > limit {
		return nil, tooLarge
	}
	reader, size, err := c.decompressed(limit)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if size < 0 {
		size = limit
		if _, err = data.ReadFrom(io.LimitReader(reader, unmeasured)); err == nil && data.Len() < unmeasured {
			return data.Bytes(), nil
		}
	}
	if err == nil && limit > smallBody { // many small ones fit
		var release func()
		release, err = c.edge.gate.Hold(c.Context(), size)
		c.release = append(c.release, release)
		if err != nil {
			return nil, err
		}
	}
	if err == nil {
		_, err = data.ReadFrom(io.LimitReader(reader, limit+1-int64(data.Len())))
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over) || int64(data.Len()) > limit:
		return nil, tooLarge
	case err != nil:
		return nil, deployments.Errorf(deployments.CodeInvalid, "the body of the request cannot be read: %w", err)
	}
	return data.Bytes(), nil
}

// decompressed returns what reads the decompressed body of a call, and its size; that is negative where nobody knows.
func (c *call) decompressed(limit int64) (io.Reader, int64, error) {
	body := http.MaxBytesReader(c.answer, c.Body, limit)
	switch encoding := c.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return body, c.ContentLength, nil
	case "gzip":
		reader, err := gzip.NewReader(body)
		if err != nil {
			err = deployments.Errorf(deployments.CodeInvalid, "the body of the request is not gzip: %w", err)
		}
		return reader, -1, err
	default:
		return nil, 0, deployments.Errorf(deployments.CodeInvalid,
			"the body of the request is encoded as %q; use gzip", clean(encoding))
	}
}

// parse reads the body of a call as JSON; an empty one leaves v as it is.
func (c *call) parse(v any) error {
	data, err := c.body()
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the body of the request is not what %s needs: %w",
			c.route.path, err)
	}
	return nil
}

// statuses translates codes; others are internal errors.
var statuses = map[deployments.Code]int{
	deployments.CodeInvalid: http.StatusBadRequest, deployments.CodeNotFound: http.StatusNotFound,
	deployments.CodeExists: http.StatusConflict, deployments.CodeConflict: http.StatusConflict,
	deployments.CodeUnauthorized: http.StatusUnauthorized, deployments.CodeForbidden: http.StatusForbidden,
	deployments.CodeUnavailable: http.StatusServiceUnavailable, deployments.CodeNoWorker: http.StatusServiceUnavailable,
	deployments.CodeFormat: http.StatusUnprocessableEntity, deployments.CodeCancelled: http.StatusServiceUnavailable,
	deployments.CodeUnconfirmed: http.StatusBadRequest,
}

// translate returns the status and the body of an error. The text of an internal error is for the log only.
func (c *call) translate(err error) (int, apitype.ErrorResponse) {
	code := deployments.CodeOf(err)
	status, known := statuses[code]
	message := err.Error()
	switch {
	case errors.Is(err, errTooLarge):
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
		c.answer.WriteHeader(http.StatusSeeOther)
		return
	}
	if answer == nil {
		if status == http.StatusOK {
			status = http.StatusNoContent
		}
		c.answer.WriteHeader(status)
		return
	}
	data, err := json.Marshal(answer)
	if err != nil {
		c.edge.Log.Error("an answer cannot be encoded", "request", c.entry.Request, "error", err)
		c.answer.WriteHeader(http.StatusInternalServerError)
		return
	}
	if c.begun {
		c.finish(status, answer, data)
		return
	}
	header.Set("Content-Type", "application/json")
	header.Set("Vary", "Accept-Encoding")
	if len(data) < compressible || !acceptsGzip(c.Header) {
		c.answer.WriteHeader(status)
		_, _ = c.answer.Write(data) // its reader has gone
		return
	}
	header.Set("Content-Encoding", "gzip")
	c.answer.WriteHeader(status)
	packed, err := gzip.NewWriterLevel(c.answer, gzip.BestSpeed)
	if err == nil {
		_, _ = packed.Write(data)
		_ = packed.Close()
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
