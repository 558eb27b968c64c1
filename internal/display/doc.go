// Package display shows updates to people and to programs: a live tree on a terminal, plain lines elsewhere, JSON on
// request. It consumes the items of an update's event log and decides nothing.
//
// A State gathers what the items say; views draw from it. What is shown never depends on when items arrive, so that
// whoever attaches to an update later sees the same.
package display
