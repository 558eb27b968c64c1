// Package display shows updates to users and to programs: a live tree on a terminal, lines of text elsewhere, JSON on
// request. It reads the items of an update's event log and decides nothing.
//
// A projection.State collects the items; views draw from it. The output never depends on when items arrive, so that a
// client that attaches to an update later shows the same.
package display
