package fakecloud

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// Options say how a cloud starts.
type Options struct {
	// Journal is the file that keeps the objects and the log over a restart; "" keeps them in memory only.
	Journal string
	// Token, when not empty, must come as a bearer token with every request to the cloud's own API.
	Token string
}

// Cloud is an http.Handler that serves both APIs. Faults, gates and the record of requests are in memory; objects and
// effects are in the journal, if there is one.
type Cloud struct {
	http.Handler
	store  *store
	faults *faults
	token  string
}

// New opens the journal, if any, and makes a cloud with the objects in it. The caller closes it.
func New(o Options) (*Cloud, error) {
	c := &Cloud{store: newStore(nil), faults: newFaults(), token: o.Token}
	if o.Journal != "" {
		j, err := openJournal(o.Journal, c.store.apply)
		if err != nil {
			return nil, err
		}
		c.store.journal = j
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/objects/{kind}", c.serve(Create))
	mux.HandleFunc("GET /v1/objects/{kind}", c.serve(List))
	mux.HandleFunc("GET /v1/objects/{kind}/{id}", c.serve(Read))
	mux.HandleFunc("PUT /v1/objects/{kind}/{id}", c.serve(Update))
	mux.HandleFunc("DELETE /v1/objects/{kind}/{id}", c.serve(Delete))
	mux.HandleFunc("POST /v1/cancel", func(w http.ResponseWriter, _ *http.Request) {
		c.store.note(Request{Op: Cancel, Status: http.StatusNoContent})
		w.WriteHeader(http.StatusNoContent)
	})
	c.serveAdmin(mux)
	c.Handler = mux
	return c, nil
}

// Close closes the journal. Requests that come later and have an effect fail.
func (c *Cloud) Close() error { return c.store.journal.close() }

// serve is one request of the cloud's own API: faults before, the effect, faults after, the reply.
func (c *Cloud) serve(op Op) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !c.admits(r) {
			write(w, http.StatusUnauthorized, &refusal{http.StatusUnauthorized, "Unauthorized",
				"the token is missing or wrong"})
			return
		}
		var body Object
		if err := decode(r, &body); err != nil {
			write(w, http.StatusBadRequest, &refusal{http.StatusBadRequest, "BadRequest", err.Error()})
			return
		}
		by := caller{r.Header.Get(HeaderOwner), r.Header.Get(HeaderOperation), r.Header.Get(HeaderCaller)}
		req := c.describe(op, r, body, by)
		if end := c.pass(Before, r, req); end != nil {
			c.end(w, req, end)
			return
		}
		status, reply, err := c.do(req, r, body, by)
		if end := c.pass(After, r, req); end != nil {
			c.end(w, req, end)
			return
		}
		var no *refusal
		if errors.As(err, &no) {
			status, reply = no.Status, no
		}
		req.Status = status
		c.store.note(req)
		write(w, status, reply)
	}
}

func (c *Cloud) admits(r *http.Request) bool {
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	return c.token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(c.token)) == 1
}

// describe says what a request is about; for an object that stands, with its own name and owner.
func (c *Cloud) describe(op Op, r *http.Request, body Object, by caller) Request {
	req := Request{Op: op, Kind: r.PathValue("kind"), ID: r.PathValue("id"), Name: body.Name, Owner: by.owner}
	if op == Create {
		req.ID = body.ID
	}
	if o, err := c.store.read(key{req.Kind, req.ID}); err == nil && op != Create {
		req.Name = o.Name
		if req.Owner == "" {
			req.Owner = o.Owner
		}
	}
	return req
}

// pass lets every fault of a moment act, in their order, until one ends the request.
func (c *Cloud) pass(at Moment, r *http.Request, req Request) *ending {
	acting := c.faults.strike(at, req)
	if acting == nil {
		return nil
	}
	defer c.faults.release(acting)
	for _, fault := range acting {
		if end := fault.act(r.Context()); end != nil {
			return end
		}
	}
	return nil
}

// do has the effect.
func (c *Cloud) do(req Request, r *http.Request, body Object, by caller) (status int, reply any, err error) {
	k := key{req.Kind, req.ID}
	switch req.Op {
	case Create:
		body.Kind, body.Foreign = req.Kind, false
		reply, err = c.store.create(body, by, false)
		return http.StatusCreated, reply, err
	case Read:
		reply, err = c.store.read(k)
	case Update:
		reply, err = c.store.update(k, body, by)
	case Delete:
		return http.StatusNoContent, nil, c.store.remove(k, by, false)
	case List:
		reply = c.store.list(req.Kind, wanted(r))
	}
	return http.StatusOK, reply, err
}

// wanted is the filter of a list request.
func wanted(r *http.Request) func(Object) bool {
	query := r.URL.Query()
	return func(o Object) bool {
		for param, values := range query {
			tag, isTag := strings.CutPrefix(param, "tag.")
			if isTag && o.Tags[tag] != values[0] || param == "name" && o.Name != values[0] {
				return false
			}
		}
		return true
	}
}

// end ends a request early. Dropping the connection is what http.ErrAbortHandler means.
func (c *Cloud) end(w http.ResponseWriter, req Request, end *ending) {
	if end.dropped {
		c.store.note(req)
		panic(http.ErrAbortHandler)
	}
	req.Status = end.reply.Status
	c.store.note(req)
	if end.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(end.retry))
	}
	write(w, end.reply.Status, end.reply)
}

// decode reads all of a body, which may be empty. Only then does the server notice a caller who goes away.
func decode(r *http.Request, into any) error {
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	return json.NewDecoder(r.Body).Decode(into)
}

func write(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The caller may have gone; there is nobody left to tell.
	_ = json.NewEncoder(w).Encode(body)
}
