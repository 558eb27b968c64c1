package http_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// api is a REST API in memory.
//
//	/records/NAME      the client gives the name: PUT, with If-None-Match, and PATCH
//	/users, /users/ID  the server assigns the ID: POST, PATCH, and a list of pages of two in an envelope
//	/jobs/NAME         as records, and ready only after it was read a few times
type api struct {
	mu       sync.Mutex
	records  map[string]map[string]any // of records and jobs, by path
	users    []map[string]any
	assigned int
	reads    map[string]int // of jobs that are not ready
	requests []string
	headers  []http.Header
	// answer, if it is set, takes the place of the API where it returns true.
	answer func(w http.ResponseWriter, r *http.Request) bool
}

// readsUntilReady is how often a job is read until it is ready.
const readsUntilReady = 3

func newAPI() *api { return &api{records: map[string]map[string]any{}, reads: map[string]int{}} }

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	a.headers = append(a.headers, r.Header.Clone())
	if a.answer != nil && a.answer(w, r) {
		return
	}
	var body map[string]any
	if r.ContentLength != 0 {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	switch kind, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); {
	case kind == "users" && name == "":
		a.userList(w, r, body)
	case kind == "users":
		a.user(w, r, name, body)
	default:
		a.record(w, r, kind == "jobs", body)
	}
}

func say(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

// merge applies a JSON merge patch.
func merge(into, patch map[string]any) {
	for key, v := range patch {
		below, isObject := v.(map[string]any)
		switch {
		case v == nil:
			delete(into, key)
		case isObject:
			inner, _ := into[key].(map[string]any)
			inner = maps.Clone(inner)
			if inner == nil {
				inner = map[string]any{}
			}
			merge(inner, below)
			into[key] = inner
		default:
			into[key] = v
		}
	}
}

func (a *api) record(w http.ResponseWriter, r *http.Request, job bool, body map[string]any) {
	name := r.URL.Path
	have, exists := a.records[name]
	switch {
	case r.Method == http.MethodPut && exists && r.Header.Get("If-None-Match") == "*":
		http.Error(w, "it exists", http.StatusPreconditionFailed)
	case r.Method == http.MethodPut:
		a.records[name] = body
		a.reads[name] = 0
		say(w, http.StatusCreated, body)
	case !exists:
		http.Error(w, "there is no "+name, http.StatusNotFound)
	case r.Method == http.MethodPatch:
		merge(have, body)
		say(w, http.StatusOK, have)
	case r.Method == http.MethodDelete:
		delete(a.records, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		a.reads[name]++
		shown := maps.Clone(have)
		shown["etag"] = tag(have)
		if job {
			w.Header().Set("Retry-After", "0")
			shown["status"] = "pending"
			if a.reads[name] >= readsUntilReady {
				shown["status"] = "running"
			}
		}
		say(w, http.StatusOK, shown)
	}
}

func tag(value any) string {
	data, _ := json.Marshal(value)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:4])
}

func (a *api) userList(w http.ResponseWriter, r *http.Request, body map[string]any) {
	if r.Method == http.MethodPost {
		if slices.ContainsFunc(a.users, func(u map[string]any) bool { return u["login"] == body["login"] }) {
			http.Error(w, "the login is taken", http.StatusConflict)
			return
		}
		a.assigned++
		user := maps.Clone(body)
		user["id"] = a.assigned
		a.users = append(a.users, user)
		say(w, http.StatusCreated, map[string]any{"data": shown(user)})
		return
	}
	const size = 2
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	list, page := []any{}, map[string]any{}
	for i := from; i < len(a.users) && i < from+size; i++ {
		list = append(list, shown(a.users[i]))
	}
	if from+size < len(a.users) {
		page["next"] = fmt.Sprintf("/users?from=%d", from+size)
	}
	say(w, http.StatusOK, map[string]any{"items": list, "page": page})
}

// shown is a user without the password, and with what the server adds.
func shown(user map[string]any) map[string]any {
	seen := maps.Clone(user)
	delete(seen, "password")
	seen["created"] = "today"
	return seen
}

func (a *api) user(w http.ResponseWriter, r *http.Request, id string, body map[string]any) {
	at := slices.IndexFunc(a.users, func(u map[string]any) bool { return fmt.Sprint(u["id"]) == id })
	switch {
	case at < 0:
		http.Error(w, "there is no user "+id, http.StatusNotFound)
	case r.Method == http.MethodDelete:
		a.users = slices.Delete(a.users, at, at+1)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPatch:
		merge(a.users[at], body)
		say(w, http.StatusOK, map[string]any{"data": shown(a.users[at])})
	default:
		say(w, http.StatusOK, map[string]any{"data": shown(a.users[at])})
	}
}

// things returns all that there is, users by their login.
func (a *api) things() map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]any{}
	for name, record := range a.records {
		all[name] = maps.Clone(record)
	}
	for _, user := range a.users {
		seen := maps.Clone(user)
		delete(seen, "id")
		all[fmt.Sprintf("user %v", user["login"])] = seen
	}
	return all
}

// made returns the requests since the last call, and forgets them.
func (a *api) made() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	made := a.requests
	a.requests, a.headers = nil, nil
	return made
}
