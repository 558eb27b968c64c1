package gitsource

import (
	"errors"

	"github.com/deployctl/deployctl/deployments"
)

// Name is the name under which this binary is the process.
const Name = "deployctl-source"

// Order is what the process is to do. One of its fields is set.
type Order struct {
	Fetch *FetchOrder
	Pack  *PackOrder
}

// FetchOrder asks for the files of a commit.
type FetchOrder struct {
	URL string
	// Branch or Commit says which; without both it is the default branch of the repository. A commit is given by its
	// digits or the first of them, or by a tag or a branch.
	Branch, Commit string
	Auth           Auth
	// Dir is where the files go; it does not exist.
	Dir string
	// HostKey is the key that an SSH server had at first, in the form of known_hosts; empty: any.
	HostKey string
	// Private and Hosts are those of outbound.Guard.
	Private bool
	Hosts   []string
}

// Auth are the credentials for a git server; at most one kind of them.
type Auth struct {
	User, Password string // over HTTP; an access token is a password
	Key, KeyPhrase string // an SSH key as PEM, and its passphrase
}

// Fetched is what was fetched.
type Fetched struct {
	Commit, Message string
	HostKey         string // of the SSH server
}

// PackOrder asks for the project in a directory.
type PackOrder struct {
	Root, Dir  string // the checkout, and the project's directory in it
	Stack      deployments.StackName
	Passphrase string // of the stack's configuration; may be empty
}

// Packed is a project that was uploaded.
type Packed struct {
	Bundle  string
	Config  map[string]deployments.ConfigValue
	Secrets deployments.SecretsProvider
	Refresh bool // the project asks for a refresh before each update
}

// message is what the process sends: a call, or its result.
type message struct {
	Call    string // a method of Service; empty: this is the result
	Texts   []string
	File    []byte
	Error   string
	Code    deployments.Code
	Fetched Fetched
	Packed  Packed
}

// answer answers a call.
type answer struct {
	Texts []string
	Error string
	Code  deployments.Code
}

// The calls.
const (
	callDecrypt     = "Decrypt"
	callMissing     = "Missing"
	callPutFile     = "PutFile"
	callPutManifest = "PutManifest"
)

// errorOf returns the error that a message describes.
func errorOf(code deployments.Code, text string) error {
	if text == "" {
		return nil
	}
	return &deployments.Error{Code: code, Message: text, Err: errors.New(text)}
}
