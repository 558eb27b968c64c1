package fakecloud

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// longPoll is how long the cloud lets a question for a gate wait before it asks to be asked again.
const longPoll = 20 * time.Second

// serveAdmin registers the API of the test that owns the cloud.
func (c *Cloud) serveAdmin(mux *http.ServeMux) {
	mux.HandleFunc("GET /admin/objects", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusOK, c.store.list(r.URL.Query().Get("kind"), func(Object) bool { return true }))
	})
	mux.HandleFunc("PUT /admin/objects/{kind}/{id}", c.putOutside)
	mux.HandleFunc("DELETE /admin/objects/{kind}/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, c.store.remove(key{r.PathValue("kind"), r.PathValue("id")}, caller{}, true))
	})
	mux.HandleFunc("GET /admin/effects", func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.Atoi(r.URL.Query().Get("after")) // none given: from the first
		write(w, http.StatusOK, c.store.since(after))
	})
	mux.HandleFunc("GET /admin/requests", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, c.store.asked())
	})
	mux.HandleFunc("GET /admin/faults", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, c.faults.status())
	})
	mux.HandleFunc("PUT /admin/faults/{name}", c.putFault)
	mux.HandleFunc("DELETE /admin/faults/{name}", func(_ http.ResponseWriter, r *http.Request) {
		c.faults.remove(r.PathValue("name"))
	})
	mux.HandleFunc("DELETE /admin/faults", func(http.ResponseWriter, *http.Request) { c.faults.remove("") })
	mux.HandleFunc("POST /admin/faults/{name}/open", func(w http.ResponseWriter, r *http.Request) {
		if !c.faults.open(r.PathValue("name")) {
			answer(w, &refusal{http.StatusNotFound, "NotFound", "there is no gate " + r.PathValue("name")})
		}
	})
	mux.HandleFunc("GET /admin/faults/{name}/wait", c.waitForFault)
}

// putOutside makes or changes an object as somebody else would. One that was there keeps its name and its owner.
func (c *Cloud) putOutside(w http.ResponseWriter, r *http.Request) {
	var o Object
	if err := decode(r, &o); err != nil {
		answer(w, &refusal{http.StatusBadRequest, "BadRequest", err.Error()})
		return
	}
	o.Kind, o.ID, o.Foreign = r.PathValue("kind"), r.PathValue("id"), true
	by := caller{owner: o.Owner}
	if stood, err := c.store.read(o.key()); err == nil {
		o.Foreign, o.Name, by.owner = stood.Foreign, stood.Name, stood.Owner
	}
	_, err := c.store.create(o, by, true)
	answer(w, err)
}

func (c *Cloud) putFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	err := decode(r, &f)
	f.Name = r.PathValue("name")
	if err == nil {
		err = c.faults.put(f)
	}
	if err != nil {
		err = &refusal{http.StatusBadRequest, "BadRequest", err.Error()}
	}
	answer(w, err)
}

// waitForFault answers 200 once the fault has struck ?times= times or, when that is not given, once it holds nobody;
// 202 when that takes longer than a long poll: ask again.
func (c *Cloud) waitForFault(w http.ResponseWriter, r *http.Request) {
	wanted := func(s FaultStatus) bool { return s.Held == 0 }
	if times, err := strconv.Atoi(r.URL.Query().Get("times")); err == nil {
		wanted = func(s FaultStatus) bool { return s.Struck >= times }
	}
	ctx, cancel := context.WithTimeout(r.Context(), longPoll)
	defer cancel()
	if c.faults.await(ctx, r.PathValue("name"), wanted) != nil {
		w.WriteHeader(http.StatusAccepted)
	}
}

// answer says 200, or why not.
func answer(w http.ResponseWriter, err error) {
	switch err := err.(type) { //nolint:errorlint // its own errors, never wrapped
	case nil:
		w.WriteHeader(http.StatusOK)
	case *refusal:
		write(w, err.Status, err)
	default:
		write(w, http.StatusInternalServerError, &refusal{http.StatusInternalServerError, "Internal", err.Error()})
	}
}
