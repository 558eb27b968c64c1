package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// decideRead reads a resource that this stack does not own. One that it owned under the same id is let go; one with
// another id is replaced: read now, the old one deleted at the end.
func (r *Run) decideRead(e *entry, old *State) {
	e.Kind = StepRead
	if old != nil && !old.External && old.ID != e.New.ID {
		e.Kind = StepReadReplacement
	}
	r.enqueue(e, false)
}

// imports reports that the entry's resource is to be adopted from the world.
func (e *entry) imports(old *State) bool {
	if e.Read || e.Imported || !e.New.Custom || e.Reg.ImportID == "" {
		return false
	}
	if old == nil || old.External {
		return true
	}
	was := old.ID
	if old.ImportID != "" {
		was = old.ImportID
	}
	return was != e.Reg.ImportID
}

// decideImport reads the resource to adopt; the ordinary plan over what was read follows.
func (r *Run) decideImport(e *entry, old *State) {
	e.Kind = StepImport
	if old != nil && !old.PendingReplacement {
		e.Kind = StepImportReplacement
	}
	e.New.ID = e.Reg.ImportID
	r.enqueue(e, false)
}

// imported goes on with an entry whose resource was adopted: its goal is compared with what the world has.
func (r *Run) imported(e *entry, op int) {
	r.emitStep(EmitOutputs, op, e)
	r.count(StepImport, e.URN)
	if e.Epoch != r.Epoch { // the program that asked is gone; the next one goes on from what is stored
		return
	}
	e.Imported, e.Old, e.Plan = true, e.New.Key, nil
	created, modified := e.New.Created, e.New.Modified
	r.prepare(e)
	e.New.Created, e.New.Modified = created, modified
	e.Stage = stageHeld
	if r.Stopped {
		r.refuse(e)
		return
	}
	r.decide(e)
}

// seed gives the randomness from which a resource's physical name is made. It is the same in every attempt at one
// create of this update, and in the next ones while the create is pending; another create gets another name.
func (r *Run) seed(u urn.URN) []byte {
	if seed, ok := r.Seeds[u]; ok {
		return seed
	}
	g := r.goal
	text := cmp.Or(g.StackID, g.Organization+"/"+g.Project+"/"+g.Stack) + "\x00" + string(u) + "\x00" +
		strconv.Itoa(g.Version)
	if n := r.Made[u]; n > 0 {
		text += "\x00" + strconv.Itoa(n)
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// ProviderID gives a provider resource its id, a UUID: the same for every attempt with the same seed.
func ProviderID(seed []byte) string {
	sum := sha256.Sum256(append([]byte("provider\x00"), seed...))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
