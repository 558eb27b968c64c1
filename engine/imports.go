package engine

// decideRead reads a resource that this stack does not own. The cases are Pulumi's:
//
//	no state, or an external one   read; the result takes the place of the old state
//	owned under the same id        read; the stack lets the resource go and keeps it as external
//	owned under another id         read as a replacement; the owned resource is deleted in the delete phase
func (r *Run) decideRead(e *entry, old *State) {
	e.Kind = StepRead
	if old != nil && !old.External && old.ID != e.New.ID {
		e.Kind = StepReadReplacement
	}
	r.enqueue(e, false)
}

// imports reports that the entry's resource is to be adopted from the world: the import option names an id, and the
// stack does not own the resource under it. The option may therefore stay in the program after the import. The id that
// was imported is compared first, because a provider may have returned another one; in a state without one, the id
// itself counts.
func (e *entry) imports(old *State) bool {
	if e.Found != nil && !e.Imported {
		return true
	}
	if e.Read || e.Imported || !e.New.Custom || e.Reg.ImportID == "" {
		return false
	}
	if old == nil || old.External {
		return true
	}
	return old.AdoptedID() != e.Reg.ImportID
}

// decideImport reads the resource to adopt; the ordinary plan over what was read follows. A live old resource becomes a
// copy that waits for its deletion. One that is pending its replacement has been deleted, so this is a plain import.
func (r *Run) decideImport(e *entry, old *State) {
	e.Kind = StepImport
	if old != nil && !old.PendingReplacement {
		e.Kind = StepImportReplacement
	}
	e.New.ID = e.Reg.ImportID
	if e.Found != nil {
		e.New.ID, e.New.ImportID = e.Found.ID, e.Found.ID
	}
	r.enqueue(e, false)
}

// imported goes on with an entry whose resource was adopted: its goal is compared with what was read, by the ordinary
// plan. The adopted state is recorded before that, so a failure of the plan loses nothing.
//
// Imported keeps decide from reading it a second time, from comparing providers and from forcing a replacement. New is
// prepared again, because the step has put the imported inputs into it; the times are those of the import.
func (r *Run) imported(e *entry, op int) {
	r.emitStep(EmitOutputs, op, e)
	r.count(StepImport, e.URN)
	if r.adopts() {
		r.adopted(e)
		return
	}
	if e.Epoch != r.Epoch { // the program that asked is gone; the next one goes on from what is stored
		return
	}
	e.Imported, e.Old, e.Plan = true, e.New.Key, nil
	created, modified := e.New.Created, e.New.Modified
	r.prepare(e)
	e.New.Created, e.New.Modified = created, modified
	r.become(e, stageHeld, 0)
	if r.Stopped {
		r.refuse(e)
		return
	}
	r.decide(e)
}
