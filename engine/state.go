package engine

import "github.com/deployctl/deployctl/engine/snapshot"

// Events, commands and goals speak in words of package snapshot. These stand here, too, so that those who use the core
// need not know where they come from.

// What is stored of a resource.
type (
	// State is the header of a stored resource.
	State = snapshot.State
	// PropertyDependency lists what one input property was computed from.
	PropertyDependency = snapshot.PropertyDependency
	// Timeouts are a resource's customTimeouts.
	Timeouts = snapshot.Timeouts
	// Hooks are the names of a resource's hooks.
	Hooks = snapshot.Hooks
	// HookPoint says when a hook runs.
	HookPoint = snapshot.HookPoint
	// PendingOperation is a call whose outcome is not known.
	PendingOperation = snapshot.PendingOperation
	// Delta is one durable change of the snapshot.
	Delta = snapshot.Delta
)

// How values and states are referred to.
type (
	// Bag refers to an immutable set of property values.
	Bag = snapshot.Bag
	// Ref says where a value is stored.
	Ref = snapshot.Ref
	// Key identifies one stored state.
	Key = snapshot.Key
	// Part names one of the bags of a state.
	Part = snapshot.Part
)

// The kinds of deltas.
const (
	DeltaBegin  = snapshot.DeltaBegin
	DeltaEnd    = snapshot.DeltaEnd
	DeltaPut    = snapshot.DeltaPut
	DeltaKeep   = snapshot.DeltaKeep
	DeltaSet    = snapshot.DeltaSet
	DeltaRemove = snapshot.DeltaRemove
	DeltaAlias  = snapshot.DeltaAlias
)

// The points at which hooks run.
const (
	BeforeCreate = snapshot.BeforeCreate
	AfterCreate  = snapshot.AfterCreate
	BeforeUpdate = snapshot.BeforeUpdate
	AfterUpdate  = snapshot.AfterUpdate
	BeforeDelete = snapshot.BeforeDelete
	AfterDelete  = snapshot.AfterDelete
	OnError      = snapshot.OnError
)

// UnknownTrigger is the State.TriggerValue of a trigger that a preview does not know. It counts as changed.
const UnknownTrigger = snapshot.UnknownTrigger
