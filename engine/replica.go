package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Replica is a second core, beside the program. While nothing that the program registers has an effect, it decides as
// the Run does, and earlier: about unchanged resources, about components, and in a preview about everything that only
// has to be planned. The program goes on at once. What it registered follows to the Run in batches, with the plans and
// with what the program was told; see Ahead.
//
// The Run decides again, and its decision counts: the replica only answers. Both start from the same base and get the
// same registrations in the same order, so they decide alike. Where they do not, for example because the update was
// cancelled meanwhile, the Run fails the update before anything with an effect relies on the answer; see contradicts.
//
// A Replica is not safe for concurrent use.
type Replica struct {
	run   *Run
	asked map[int]int    // operations of plans in flight: the sequence number that waits
	ahead map[int]*Ahead // by sequence number of what has no answer yet
}

// Ahead is what a replica has found out about a message. It travels to the Run with the message.
type Ahead struct {
	// Plan is the result of the plan whose digest is Asked. It stands for the result of a Plan that asks the same.
	Asked string   `json:"asked,omitempty"`
	Plan  *Planned `json:"plan,omitempty"`
	// Answer is the digest of the reply that the program has got.
	Answer string `json:"answer,omitempty"`
}

// Decided is what a Replica has decided: plans to be made, each answered by a Planned, and replies for the program.
type Decided struct {
	Plans   []Plan
	Answers []Answer
}

// Answer is a reply for the program, and what travels to the Run with the message that it answers.
type Answer struct {
	Reply Reply
	Ahead Ahead
}

// NewReplica returns a replica of the Run that New makes of the same arguments, in its first epoch. It returns nil if
// the Run has other things to do before the program's requests, or has nothing that could be unchanged.
func NewReplica(goal Goal, base []State, pending []PendingOperation) *Replica {
	if goal.Kind != KindUp || goal.Refresh || len(pending) > 0 || len(base) == 0 && !goal.DryRun {
		return nil
	}
	run := New(goal, base, nil)
	run.Handle(RunStarted{Epoch: 1})
	if ready := run.Ready(); len(ready.Start) > 0 || run.Phase != phaseProgram {
		return nil
	}
	return &Replica{run: run, asked: map[int]int{}, ahead: map[int]*Ahead{}}
}

// Handle applies a message of the program or the result of a plan, and returns what is decided by it. goesOn is false
// once something has an effect, fails, or waits for anything but a plan: what was decided until then is still valid,
// and the replica must not be used any more.
func (r *Replica) Handle(ev Event) (out Decided, goesOn bool) {
	switch ev := ev.(type) {
	case Registered:
		r.ahead[ev.Seq] = &Ahead{}
	case OutputsRegistered:
		r.ahead[ev.Seq] = &Ahead{}
	case Planned:
		if a := r.ahead[r.asked[ev.Op]]; a != nil {
			a.Plan = &ev
		}
		delete(r.asked, ev.Op)
	default:
		return out, false
	}
	r.run.Handle(ev)
	goesOn = true
	for ready := r.run.Ready(); goesOn && !ready.Empty(); ready = r.run.Ready() {
		goesOn = r.take(ready, &out)
	}
	stuck := len(r.ahead) > 0 && len(r.asked) == 0
	return out, goesOn && !stuck && !r.run.Stopped
}

// take adds what is ready to what is decided. It reports false if something of it is not for a replica.
func (r *Replica) take(ready Ready, out *Decided) bool {
	only := true
	for _, c := range ready.Start {
		plan, ok := c.(Plan)
		if !ok {
			only = false
			continue
		}
		seq := r.run.Ops[plan.Op].Entry.Seq
		r.asked[plan.Op] = seq
		r.ahead[seq].Asked = plan.digest()
		out.Plans = append(out.Plans, plan)
	}
	for _, reply := range ready.Replies {
		if reply.Result != ResultSuccess {
			only = false
			continue
		}
		a := r.ahead[reply.Seq]
		delete(r.ahead, reply.Seq)
		a.Answer = reply.digest()
		out.Answers = append(out.Answers, Answer{Reply: reply, Ahead: *a})
	}
	return only
}

// plannedAhead takes the plan of a replica in the place of an answer to p, if the replica has asked the same.
func (r *Run) plannedAhead(e *entry, p Plan) bool {
	if e.Ahead == nil || e.Ahead.Plan == nil || e.Ahead.Asked != p.digest() {
		return false
	}
	plan := *e.Ahead.Plan // a copy: it is worked off
	e.Plan = &plan
	r.become(e, stagePlanned, 0)
	return true
}

// answeredAhead reports that the program has got a reply to the message already. If the reply is not the one that it
// has got, the update ends.
func (r *Run) answeredAhead(a *Ahead, reply Reply) bool {
	if a == nil || a.Answer == "" {
		return false
	}
	if a.Answer != reply.digest() {
		r.contradict(reply.URN)
	}
	return true
}

// recordAhead carries out what a replica has answered, so that it is recorded although the program has failed since.
func (r *Run) recordAhead() {
	for r.Phase < phaseProgram && r.advanceOpening() {
	}
	for moved := r.Phase == phaseProgram; moved; {
		moved = false
		for _, e := range r.Entries[r.firstOpen():] {
			if e.Ahead != nil && e.Ahead.Answer != "" && e.runnable() && !e.blocked() {
				moved = r.advanceEntry(e) || moved
			}
		}
	}
}

// contradicts ends the update if the program was told that an entry needs no call of its provider: it is about to need
// one. It reports whether it did.
func (r *Run) contradicts(e *entry) bool {
	if e.Ahead == nil || e.Ahead.Answer == "" {
		return false
	}
	r.contradict(e.URN)
	return true
}

// contradict ends an update whose program was told something else than what is decided now. In an update that is
// ending anyway, nothing that is refused relies on an answer.
func (r *Run) contradict(u urn.URN) {
	if r.Stopped {
		return
	}
	message := fmt.Sprintf("%s was reported to the program as needing no change, and needs one; nothing was done to "+
		"it: run the update again", u)
	r.diagnose("error", u, "%s", message)
	r.noteError(message)
	r.stop()
}

// digest identifies what a plan asks for, in whichever run and with whichever operation.
func (p Plan) digest() string {
	p.Op, p.Answer = 0, nil
	return digestOf(p)
}

// digest identifies what a reply tells the program: Bags by their digests, wherever their values stand.
func (a Reply) digest() string {
	return digestOf([]any{a.Epoch, a.Seq, a.URN, a.ID, a.Object.Digest, a.Stables, a.Result, a.Unknown, a.Error})
}

func digestOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // not possible: the driver stores the same values as JSON
		panic(fmt.Sprintf("a digest: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}
