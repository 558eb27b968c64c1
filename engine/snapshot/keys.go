package snapshot

import (
	"strconv"
	"strings"
)

// Key identifies one stored state. A URN does not: several copies of one URN may wait for deletion. "b17" is index 17
// of the base, "p3" is that of the base's pending operation 3, "o42" is what operation 42 of this update made.
//
// Invariant: an operation makes at most one state, so an operation's number and its key identify each other.
type Key string

// BaseKey returns the key of the state at an index of the base.
func BaseKey(index int) Key { return Key("b" + strconv.Itoa(index)) }

// PendingKey returns the key of the state that a pending operation of the base holds, by its index.
func PendingKey(index int) Key { return Key("p" + strconv.Itoa(index)) }

// OpKey returns the key of the state that an operation of this update made.
func OpKey(op int) Key { return Key("o" + strconv.Itoa(op)) }

// Base returns the index that BaseKey was given.
func (k Key) Base() (index int, ok bool) { return k.number("b") }

// Pending returns the index that PendingKey was given.
func (k Key) Pending() (index int, ok bool) { return k.number("p") }

// Op returns the number that OpKey was given.
func (k Key) Op() (op int, ok bool) { return k.number("o") }

func (k Key) number(prefix string) (int, bool) {
	digits, ok := strings.CutPrefix(string(k), prefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0
}

// Part names one of the bags of a state.
type Part string

// The parts of a state.
const (
	PartInputs  Part = "in"
	PartOutputs Part = "out"
	PartTrigger Part = "trigger"
	// PartExtension is no value of the resource itself; checkpoints hold it once for all resources that have it.
	PartExtension Part = "ext"
)

// Parts are the parts of a state, in the order in which they are stored.
var Parts = [...]Part{PartInputs, PartOutputs, PartTrigger, PartExtension}

// Bag returns the bag of a part; nil when there is no such part.
func (s *State) Bag(p Part) *Bag {
	switch p {
	case PartInputs:
		return &s.Inputs
	case PartOutputs:
		return &s.Outputs
	case PartTrigger:
		return &s.Trigger
	case PartExtension:
		return &s.Extension
	default:
		return nil
	}
}

// Ref says where a value is stored that a header refers to: a part of a state of the base ("base:17/in",
// "base:p3/out"), a part of a state in the update's own deltas ("op:42/in"), or a blob ("blob:HASH"). Without a part it
// means the state as it is stored ("base:17").
type Ref string

const (
	refBase = "base:"
	refOp   = "op:"
	refBlob = "blob:"
)

// Ref refers to a part of the state with the key, or with an empty part to the state as it is stored.
//
// A state of this update is found by its operation in the deltas, everything else in the base, so a reference stays
// valid when its state moves.
func (k Key) Ref(p Part) Ref {
	ref := refBase + strings.TrimPrefix(string(k), "b")
	if op, made := k.Op(); made {
		ref = refOp + strconv.Itoa(op)
	}
	if p != "" {
		ref += "/" + string(p)
	}
	return Ref(ref)
}

// BlobRef refers to a blob by its hash.
func BlobRef(hash string) Ref { return Ref(refBlob + hash) }

// State returns the key and the part that Key.Ref was given; ok is false for a reference to a blob and for what is no
// reference at all.
func (r Ref) State() (k Key, p Part, ok bool) {
	where, part, _ := strings.Cut(string(r), "/")
	if op, made := strings.CutPrefix(where, refOp); made {
		k = Key("o" + op)
		_, ok = k.Op()
		return k, Part(part), ok
	}
	where, ok = strings.CutPrefix(where, refBase)
	if k = Key(where); !ok {
		return "", "", false
	}
	if _, pending := k.Pending(); !pending {
		k = "b" + k
		_, ok = k.Base()
	}
	return k, Part(part), ok
}

// Blob returns the hash that BlobRef was given.
func (r Ref) Blob() (hash string, ok bool) { return strings.CutPrefix(string(r), refBlob) }
