package postgres

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/stamp"
)

// remark is a comment: a text of the user's, and the stamp.
type remark struct {
	text  string
	stamp stamp.Stamp
}

var stamped = regexp.MustCompile(`^(?s:(.*)\n)?deployctl: owner=([0-9a-f]+) stack=(.*)$`)

func parseRemark(comment string) remark {
	if m := stamped.FindStringSubmatch(comment); m != nil {
		return remark{m[1], stamp.Stamp{Owner: m[2], Stack: m[3]}}
	}
	return remark{text: comment}
}

func (r remark) String() string {
	line := fmt.Sprintf("deployctl: owner=%s stack=%s", r.stamp.Owner, r.stamp.Stack)
	if r.text == "" {
		return line
	}
	return r.text + "\n" + line
}

// toBe is what a comment shall be. A text that was never declared stays.
func (r remark) toBe(declared, before string, who provider.Identity) remark {
	if declared != "" || before != "" {
		r.text = declared
	}
	r.stamp = stamp.For(who)
	return r
}

// identity is what a resource has in common with a comment's.
type identity struct {
	provider.Identity
	id, remembered string // empty: nothing is known
}

// refuses is the error if what was seen belongs to somebody else.
func (i identity) refuses(mark stamp.Stamp, thing, id string) error {
	if mark.Refuses(i.Identity, i.id != "", i.remembered) {
		return mark.Foreign(thing, id)
	}
	return nil
}

// found is the answer to a Read that has found something with a stamp.
func found[In, Out any](i identity, mark stamp.Stamp, id string, in In, out Out) provider.Found[In, Out] {
	ownership := mark.Ownership(i.Identity, i.remembered)
	if i.id == "" {
		ownership = mark.LookedUp(i.Identity)
	}
	return provider.Found[In, Out]{Ownership: ownership, Owner: mark.People(), ID: id, Inputs: in, Output: out}
}

// told is an input as Read reports it: as the server has it, if it is declared or nothing is remembered.
func told(known bool, declared, have string) string {
	if known && declared == "" {
		return ""
	}
	return have
}

// joined makes an ID of names.
func joined(names ...string) string {
	for i, n := range names {
		names[i] = url.PathEscape(n)
	}
	return strings.Join(names, "/")
}

// split returns the names in an ID.
func split(id string) ([]string, error) {
	names := strings.Split(id, "/")
	for i, n := range names {
		var err error
		if names[i], err = url.PathUnescape(n); err != nil || names[i] == "" {
			return nil, plainf("%q is not the ID of such a resource", id)
		}
	}
	return names, nil
}

const longestName = 63 // the server would cut off the rest

// naming are names that SQL does not need to quote, but for digits at their beginning.
var naming = provider.Naming{MaxLen: longestName, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789_"}

// wrongNames reports names that PostgreSQL cannot have. An empty one was left out.
func wrongNames(names map[string]string) (failures []provider.Failure) {
	for _, property := range slices.Sorted(maps.Keys(names)) {
		if n := names[property]; len(n) > longestName || strings.Contains(n, "\x00") {
			failures = append(failures, provider.Failure{Property: property,
				Reason: fmt.Sprintf("must be at most %d bytes, none of them zero", longestName)})
		}
	}
	return failures
}

// noted is what bears a comment.
type noted struct{ Name, Comment string }

// list tells what bears the stamp of a stack, of a query for names and comments.
func list(ctx context.Context, s *session, stack provider.Identity, sql string, found func(name string) error) error {
	all, err := rows[noted](ctx, s, sql)
	if err != nil {
		return failed("the list of database "+s.database, err)
	}
	for _, n := range all {
		if parseRemark(n.Comment).stamp.Of(stack) || unfinishedOf(n.Name, stack) {
			if err := found(n.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// listServer is a list of what the server has.
func (c *connection) listServer(
	ctx context.Context, stack provider.Identity, sql string, found func(id string) error,
) error {
	s, err := c.dial(ctx, "")
	if err != nil {
		return err
	}
	defer s.end()
	return list(ctx, s, stack, sql, found)
}

// listDatabases is a list of what is in each database. Those that may not be looked into are counted.
func (c *connection) listDatabases(
	ctx context.Context, stack provider.Identity, sql string, found func(id string) error,
) error {
	type open struct {
		Name    string
		Allowed bool
	}
	s, err := c.dial(ctx, "")
	if err != nil {
		return err
	}
	all, err := rows[open](ctx, s, `select datname, has_database_privilege(oid, 'connect') from pg_database
		where datallowconn and datconnlimit <> -2 order by datname`)
	s.end()
	if err != nil {
		return failed("the list of databases", err)
	}
	closed := 0
	for _, d := range all {
		if !d.Allowed {
			closed++
			continue
		}
		within, err := c.dial(ctx, d.Name)
		if is(err, noDatabase) { // dropped meanwhile
			continue
		}
		if err != nil {
			return err
		}
		err = list(ctx, within, stack, sql, func(name string) error { return found(joined(d.Name, name)) })
		within.end()
		if err != nil {
			return err
		}
	}
	if closed > 0 {
		return plainf("%d of %d databases may not be looked into, so it is not known what they have; grant the role that "+
			"connects CONNECT on them", closed, len(all))
	}
	return nil
}
