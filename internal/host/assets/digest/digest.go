// Package digest is what this binary does under another name: it opens what the assets and archives of a program name,
// as files and by URL, and says their hashes. It runs in the sandbox of the program's update, with the program's user,
// network and limits: so nothing that a program names is opened by the worker, and what it leads to can harm the
// program's own update only.
//
// All that happens while the packages of the binary are being initialized; see package launcher about the imports.
package digest

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
)

// Name is the name under which this binary is the process.
const Name = "deployctl-digest"

// Order asks for the missing hashes of an item. Orders are written to the standard input of the process, as JSON.
type Order struct {
	ID   int
	Item *Item
}

// Item is an asset or an archive as a program names it: by a path, from the working directory on, or by a URI.
type Item struct {
	Archive   bool   `json:",omitempty"`
	Hash      string `json:",omitempty"` // SHA-256 in hexadecimal; empty: it is missing
	Path, URI string `json:",omitempty"`
	// Text is that of an asset; nil if it has none.
	Text *string `json:",omitempty"`
	// Members are what an archive is made of, by name; nil if it does not list them.
	Members map[string]*Item
}

// Missing returns the items without a hash: what this one is made of, by the order of the names, and then itself.
func (i *Item) Missing() []*Item {
	var missing []*Item
	for _, name := range slices.Sorted(maps.Keys(i.Members)) {
		missing = append(missing, i.Members[name].Missing()...)
	}
	if i.Hash == "" {
		missing = append(missing, i)
	}
	return missing
}

// Answer is a line that the process writes about an order, as JSON: a hash of one that Missing returns, or the end.
type Answer struct {
	ID    int    // of the order
	Index int    `json:",omitempty"`
	Hash  string `json:",omitempty"`
	Error string `json:",omitempty"` // at the end: why there are no hashes
	End   bool   `json:",omitempty"`
}

func init() {
	if len(os.Args) == 0 || os.Args[0] != Name {
		return
	}
	serve(os.Stdin, os.Stdout)
	os.Exit(0)
}

// serve answers orders, all at the same time, until the input ends: whoever started the process is gone then.
func serve(orders io.Reader, answers io.Writer) {
	in, out := json.NewDecoder(orders), &answerer{to: json.NewEncoder(answers)}
	for {
		var o Order
		if in.Decode(&o) != nil || o.Item == nil {
			return
		}
		go out.carryOut(o)
	}
}

// answerer writes answers.
type answerer struct {
	mu sync.Mutex
	to *json.Encoder
}

func (a *answerer) say(answer Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.to.Encode(answer) // fails if nobody listens any more
}

// longestError bounds the text of an error, so that an answer is one line for its reader.
const longestError = 8 << 10

// carryOut computes the missing hashes of an order, and says them.
func (a *answerer) carryOut(o Order) {
	missing := o.Item.Missing()
	if err := hash(context.Background(), o.Item); err != nil {
		text := err.Error()
		a.say(Answer{ID: o.ID, Error: text[:min(len(text), longestError)], End: true})
		return
	}
	for index, item := range missing {
		a.say(Answer{ID: o.ID, Index: index, Hash: item.Hash})
	}
	a.say(Answer{ID: o.ID, End: true})
}
