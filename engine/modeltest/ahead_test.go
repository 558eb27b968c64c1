package modeltest

import (
	"slices"

	"github.com/deployctl/deployctl/engine"
)

// ahead is a replica beside the program, and what has not reached the run yet.
type ahead struct {
	replica *engine.Replica // nil once it has ended
	held    []engine.Registered
	plans   []engine.Plan // to be made
}

// offer passes a registration to the replica if there is one, else to the run.
func (d *driver) offer(ev engine.Registered) {
	if d.ahead.replica == nil && len(d.ahead.held) == 0 {
		d.handle(ev)
		return
	}
	d.ahead.held = append(d.ahead.held, ev)
	d.replicate(ev)
}

// replicate passes an event to the replica, and tells the program what that decides.
func (d *driver) replicate(ev engine.Event) {
	if d.ahead.replica == nil {
		return
	}
	d.say("ahead: " + line(ev))
	decided, goesOn := d.ahead.replica.Handle(ev)
	d.ahead.plans = append(d.ahead.plans, decided.Plans...)
	for _, a := range decided.Answers {
		d.say("ahead: > " + line(a.Reply))
		i := slices.IndexFunc(d.ahead.held, func(h engine.Registered) bool { return h.Seq == a.Reply.Seq })
		d.ahead.held[i].Ahead = &a.Ahead
		d.reply(a.Reply)
		answeredAhead++
	}
	if !goesOn {
		d.ahead.replica, d.ahead.plans = nil, nil
	}
}

// answeredAhead counts the registrations that replicas have answered, in all histories.
var answeredAhead int

// goAhead makes a plan for the replica, or lets the run have what may be sent. It reports whether there was something
// to do.
func (d *driver) goAhead() bool {
	a := &d.ahead
	if n := len(a.plans); n > 0 && d.rng.IntN(2) == 0 {
		p := a.plans[d.rng.IntN(n)]
		a.plans = slices.DeleteFunc(a.plans, func(o engine.Plan) bool { return o.Op == p.Op })
		d.replicate(planned(p))
		return true
	}
	if len(a.held) > 0 && (a.replica == nil || a.held[0].Ahead != nil) {
		next := a.held[0]
		a.held = a.held[1:]
		d.handle(next)
		return true
	}
	return len(a.plans) > 0
}
