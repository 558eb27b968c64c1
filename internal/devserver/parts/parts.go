// Package parts says what the embedded service asks of its servers: Temporal, its Web UI and the S3 server. They are in
// package servers, which takes minutes to compile and most of the room of a program, so only deployctl-embedded has it.
package parts

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"

	"go.temporal.io/api/enums/v1"
)

// Servers runs the servers, on listeners that it is given: they open no port themselves. Package servers implements it.
type Servers interface {
	// Schema is the version of the database that the Temporal server expects.
	Schema() Schema
	// CreateDatabase fills an empty file with the schema, and leaves it to the caller to sync it.
	CreateDatabase(file string) error
	// StartTemporal returns once the server listens. Its namespace may not answer yet.
	StartTemporal(t Temporal) (stop func() error, err error)
	// WebUI returns Temporal's Web UI without a gate: whoever reaches it acts with the identity of w.Client. It is used
	// until end is called.
	WebUI(w WebUI) (handler http.Handler, end func(), err error)
	// ServeS3 serves until ctx ends. It changes the working directory of the process.
	ServeS3(ctx context.Context, s S3) error
}

// Schema is a version of Temporal's database. SQLite databases of Temporal carry no version of their own.
type Schema struct {
	Executions string `json:"executions"`
	Visibility string `json:"visibility"`
}

// Temporal describes a Temporal server.
type Temporal struct {
	Database   string // path of a file that CreateDatabase has filled
	Frontend   net.Listener
	Inner      [3]net.Listener // of the other services: history, matching, worker
	Server     *tls.Config
	Client     *tls.Config // of the services among each other
	Log        io.Writer   // warnings and worse
	LogPath    string      // of Log, for messages
	StartLimit time.Duration

	Namespace        string // made unless it is there
	Retention        time.Duration
	SearchAttributes map[string]enums.IndexedValueType
}

// WebUI describes Temporal's Web UI.
type WebUI struct {
	Temporal  string // host:port
	Client    *tls.Config
	Namespace string // shown first
	Codec     string // URL of the codec endpoint; empty for none
}

// S3 describes an S3 server.
type S3 struct {
	Listener net.Listener
	S3Keys          // open every bucket
	Others   S3Keys // open every bucket but Own
	Region   string
	Objects  string // directory; made if it is not there
	// Socket is the path of a socket that the server makes, in a directory of this user alone. It may be relative to
	// Objects.
	Socket string
	// Metadata is the directory of the objects' metadata where the file system has no extended attributes.
	Metadata string
	// Own is the bucket of the service itself, whose objects are on disk before they are acknowledged.
	Own string
}

// S3Keys are the credentials of a client of the S3 server.
type S3Keys struct{ AccessKey, SecretKey string }
