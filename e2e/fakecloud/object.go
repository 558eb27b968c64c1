package fakecloud

import (
	"strings"
	"time"
)

// Object is one thing in the cloud. Kind and ID name it. Properties and Tags are replaced as wholes by an update and
// never changed in place, so that a value once handed out stays as it was.
type Object struct {
	Kind string `json:"kind"`
	// ID is given by the creator or, when the creator leaves it empty, made by the cloud at random.
	ID string `json:"id"`
	// Name, when not empty, is unique within its kind.
	Name       string            `json:"name,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	Properties map[string]any    `json:"properties,omitempty"`
	// Owner says on whose behalf the object was made, as the creator's request said (a provider sends the URN). The
	// cloud's own API never searches by it: it is the test's way to tell a duplicate, not the provider's.
	Owner string `json:"owner,omitempty"`
	// Foreign objects were made over the admin API, by somebody else as it were.
	Foreign bool `json:"foreign,omitempty"`
}

func (o Object) key() key { return key{o.Kind, o.ID} }

// key is what tells objects apart.
type key struct{ kind, id string }

// Op is what a request asks for.
type Op string

// The operations of the cloud's own API.
const (
	Create Op = "create"
	Read   Op = "read"
	Update Op = "update"
	Delete Op = "delete"
	List   Op = "list"
	// Cancel is what a provider tells when it was asked to give up.
	Cancel Op = "cancel"
)

// Effect is one change that the cloud made, in the order of Seq, which starts at 1.
type Effect struct {
	Seq   int       `json:"seq"`
	Time  time.Time `json:"time"`
	Op    Op        `json:"op"`
	Kind  string    `json:"kind"`
	ID    string    `json:"id"`
	Name  string    `json:"name,omitempty"`
	Owner string    `json:"owner,omitempty"`
	// Operation is the idempotency key that the caller sent, if any. The cloud records it and does not honour it.
	Operation string `json:"operation,omitempty"`
	// Repeat says that an earlier effect carried the same Operation.
	Repeat bool `json:"repeat,omitempty"`
	// Caller names the process that asked, as it said itself.
	Caller string `json:"caller,omitempty"`
	// Outside effects came over the admin API.
	Outside bool `json:"outside,omitempty"`
}

// Request is one request to the cloud's own API, whether or not it had an effect; reads and lists among them.
type Request struct {
	Time  time.Time `json:"time"` // when it was answered, or dropped
	Op    Op        `json:"op"`
	Kind  string    `json:"kind"`
	ID    string    `json:"id,omitempty"`
	Name  string    `json:"name,omitempty"`
	Owner string    `json:"owner,omitempty"`
	// Status is the HTTP status answered; 0 when the connection was dropped instead.
	Status int `json:"status"`
}

// caller is what a request says about itself in headers.
type caller struct{ owner, operation, process string }

// The headers in which a caller says who it is. None is required.
const (
	HeaderOwner     = "X-Fakecloud-Owner"
	HeaderOperation = "X-Fakecloud-Operation"
	HeaderCaller    = "X-Fakecloud-Caller"
)

// ownerName is the resource's own name in an owner that is a URN, or all of another owner.
func ownerName(owner string) string {
	if i := strings.LastIndex(owner, "::"); i >= 0 {
		return owner[i+len("::"):]
	}
	return owner
}
