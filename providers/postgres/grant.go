package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/provider"
)

// Grant is deployctl:postgres:Grant.
type Grant struct{ conn *connection }

// public stands for all roles.
const public = "public"

// GrantIn declares privileges of a role.
type GrantIn struct {
	Role        string   `pulumi:"role,replace" doc:"The role that gets them, or public for all roles."`
	On          string   `pulumi:"on,replace" doc:"What they are of: database, schema, table (also a view) or sequence."`
	Database    string   `pulumi:"database,optional,replace" doc:"The database, or the one that the object is in; without it, deployctl:postgresDatabase."`
	Schema      string   `pulumi:"schema,optional,replace" doc:"The schema, or the one that the object is in."`
	Object      string   `pulumi:"object,optional,replace" doc:"The name of the table or sequence."`
	Privileges  []string `pulumi:"privileges" doc:"The privileges, such as SELECT. What else the role has is left alone."`
	GrantOption bool     `pulumi:"grantOption,optional" doc:"Whether the role may grant them to others."`
}

// GrantOut describes privileges that were granted.
type GrantOut struct {
	Role     string `pulumi:"role" doc:"The role that has them."`
	Database string `pulumi:"database" doc:"The database."`
}

// target is a kind of object that privileges are of.
type target struct {
	keyword    string
	names      []string // the inputs that name it
	privileges []string
	acl        string // a query of the access list, the kind for the defaults, and the owner; $2 and so on are the names
}

const relation = `select relacl, '%s'::"char", relowner from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where n.nspname = $2 and c.relname = $3 and c.relkind = any(array[%s]::"char"[])`

var targets = map[string]target{
	"database": {"DATABASE", nil, []string{"CREATE", "CONNECT", "TEMPORARY"},
		`select datacl, 'd'::"char", datdba from pg_database where datname = $2`},
	"schema": {"SCHEMA", []string{"schema"}, []string{"CREATE", "USAGE"},
		`select nspacl, 'n'::"char", nspowner from pg_namespace where nspname = $2`},
	"table": {"TABLE", []string{"schema", "object"},
		[]string{"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"},
		fmt.Sprintf(relation, "r", "'r', 'p', 'v', 'm', 'f'")},
	"sequence": {"SEQUENCE", []string{"schema", "object"}, []string{"USAGE", "SELECT", "UPDATE"},
		fmt.Sprintf(relation, "s", "'S'")},
}

// Describe is the type's text in the schema.
func (*Grant) Describe() string {
	return "Privileges of a role on an object of a PostgreSQL server. Privileges that are there are taken for this " +
		"resource's, since nothing can mark them, and a delete revokes them. The ID, for imports, is " +
		"ROLE/database/DATABASE, ROLE/schema/DATABASE/SCHEMA or ROLE/table/DATABASE/SCHEMA/TABLE, and likewise of a sequence."
}

// Check knows which privileges an object can have, and what names it.
func (*Grant) Check(_ context.Context, in provider.Inputs[GrantIn]) (failures []provider.Failure) {
	fail := func(property, format string, args ...any) {
		failures = append(failures, provider.Failure{Property: property, Reason: fmt.Sprintf(format, args...)})
	}
	given := map[string]string{"role": in.Value.Role, "database": in.Value.Database, "schema": in.Value.Schema,
		"object": in.Value.Object}
	failures = wrongNames(given)
	if in.Value.Role == "" && in.Known("role") {
		fail("role", "may not be empty")
	}
	if !in.Known("on") {
		return failures
	}
	t, ok := targets[in.Value.On]
	if !ok {
		fail("on", "must be one of %s, not %q", strings.Join(slices.Sorted(maps.Keys(targets)), ", "), in.Value.On)
		return failures
	}
	for _, property := range []string{"schema", "object"} {
		switch named := slices.Contains(t.names, property); {
		case !in.Known(property) || named == (given[property] != ""):
		case named:
			fail(property, "must be given for a %s", in.Value.On)
		default:
			fail(property, "may not be given for a %s", in.Value.On)
		}
	}
	if len(in.Value.Privileges) == 0 && in.Known("privileges") {
		fail("privileges", "may not be empty")
	}
	for _, p := range in.Value.Privileges {
		if !slices.Contains(t.privileges, p) {
			fail("privileges", "of a %s are %s, not %q", in.Value.On, strings.Join(t.privileges, ", "), p)
		}
	}
	return failures
}

// grant is a grant as its ID says.
type grant struct {
	target
	role, on, database string
	names              []string // of the object, below the database
}

func (c *connection) grant(id string, in GrantIn) (g grant, err error) {
	names := []string{in.Role, in.On, in.Database}
	if id != "" {
		if names, err = split(id); err != nil {
			return g, err
		}
	} else if names[2] == "" {
		config, _, err := c.get()
		if err != nil {
			return g, err
		}
		names[2] = config.Database
	}
	if id == "" {
		names = append(names, slices.DeleteFunc([]string{in.Schema, in.Object}, func(n string) bool { return n == "" })...)
	}
	const least = 3
	if len(names) < least {
		return g, plainf("the ID %q is not that of a grant", id)
	}
	g = grant{targets[names[1]], names[0], names[1], names[2], names[least:]}
	if g.keyword == "" || len(g.names) != len(g.target.names) {
		return g, plainf("a grant on a %q is named by %q", g.on, g.target.names)
	}
	return g, nil
}

func (g grant) id() string { return joined(append([]string{g.role, g.on, g.database}, g.names...)...) }

func (g grant) object() string {
	if len(g.names) == 0 {
		return g.keyword + " " + name(g.database)
	}
	return g.keyword + " " + name(g.names...)
}

func (g grant) grantee() string {
	if g.role == public {
		return "PUBLIC"
	}
	return name(g.role)
}

func (g grant) what() string { return fmt.Sprintf("grant on %s to %s", g.object(), g.role) }

// dial connects to the database that the object is in. A database itself is changed from without, where the locks of
// all grants on databases are.
func (g grant) dial(ctx context.Context, c *connection) (*session, error) {
	if len(g.names) == 0 {
		return c.dial(ctx, "")
	}
	return c.dial(ctx, g.database)
}

// observe returns the privileges that the role has itself, and whether it may grant them. An object or role that is not
// there has none.
func (g grant) observe(ctx context.Context, s *session) (map[string]bool, error) {
	args := []any{g.role}
	if len(g.names) == 0 {
		args = append(args, g.database)
	}
	for _, n := range g.names {
		args = append(args, n)
	}
	type privilege struct {
		Name      string
		Grantable bool
	}
	all, err := rows[privilege](ctx, s, `select a.privilege_type, bool_or(a.is_grantable)
		from (`+g.acl+`) o(acl, kind, owner), aclexplode(coalesce(o.acl, acldefault(o.kind, o.owner))) a
		where a.grantee = case when $1::text = '`+public+`' then 0 else (select oid from pg_roles where rolname = $1::text) end
		group by 1`, args...)
	have := map[string]bool{}
	for _, p := range all {
		have[p.Name] = p.Grantable
	}
	return have, err
}

// lock has the transactions of all grants of a database follow each other: two that change one object at once fail.
const lock = "SELECT pg_advisory_xact_lock(7310868)"

// change are the statements that bring what a role has to the wanted privileges, and take back those of lost.
func (g grant) change(have map[string]bool, want, lost []string, option bool) []string {
	var add, narrow, remove []string
	for _, p := range want {
		grantable, there := have[p]
		switch {
		case !there || option && !grantable:
			add = append(add, p)
		case grantable && !option:
			narrow = append(narrow, p)
		}
	}
	for _, p := range lost {
		if _, there := have[p]; there && !slices.Contains(want, p) {
			remove = append(remove, p)
		}
	}
	var statements []string
	say := func(format string, privileges []string, last string) {
		if len(privileges) > 0 {
			statements = append(statements, fmt.Sprintf(format, strings.Join(privileges, ", "), g.object(), g.grantee())+last)
		}
	}
	also := ""
	if option {
		also = " WITH GRANT OPTION"
	}
	say("GRANT %s ON %s TO %s", add, also)
	say("REVOKE GRANT OPTION FOR %s ON %s FROM %s", narrow, "")
	say("REVOKE %s ON %s FROM %s", remove, "")
	if len(statements) > 0 {
		statements = append([]string{lock}, statements...)
	}
	return statements
}

// bring makes the privileges as wanted, and looks whether they are: what a role may not grant or revoke, the server
// passes over without an error.
func (g grant) bring(ctx context.Context, s *session, want, lost []string, option bool) error {
	have, err := g.observe(ctx, s)
	if err != nil {
		return err
	}
	statements := g.change(have, want, lost, option)
	if len(statements) == 0 {
		return nil
	}
	if err := s.apply(ctx, statements...); err != nil {
		return err
	}
	if have, err = g.observe(ctx, s); err != nil {
		return err
	}
	if left := g.change(have, want, lost, option); len(left) > 0 {
		return plainf("%s may not do this, or another role has granted it: %s", s.user, strings.Join(left[1:], "; "))
	}
	return nil
}

// Reconcile grants what is missing, and revokes what is not declared any more.
func (o *Grant) Reconcile(ctx context.Context, r provider.Request[GrantIn, GrantOut]) (string, GrantOut, error) {
	g, err := o.conn.grant(r.ID, r.News)
	if err != nil {
		return "", GrantOut{}, err
	}
	s, err := g.dial(ctx, o.conn)
	if err != nil {
		return "", GrantOut{}, err
	}
	defer s.end()
	var lost []string
	if r.Olds != nil {
		lost = r.Olds.Privileges
	}
	if err := g.bring(ctx, s, r.News.Privileges, lost, r.News.GrantOption); err != nil {
		return "", GrantOut{}, failed(g.what(), err)
	}
	return g.id(), GrantOut{g.role, g.database}, nil
}

// Read reports which of the privileges that are declared are there.
func (o *Grant) Read(
	ctx context.Context, r provider.Lookup[GrantIn, GrantOut],
) (found provider.Found[GrantIn, GrantOut], err error) {
	in, known := GrantIn{}, r.Inputs != nil
	if known {
		in = *r.Inputs
	}
	g, err := o.conn.grant(r.ID, in)
	if err != nil {
		return found, err
	}
	found.Ownership = provider.Absent
	s, err := g.dial(ctx, o.conn)
	if is(err, noDatabase) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	defer s.end()
	have, err := g.observe(ctx, s)
	if err != nil {
		return found, failed(g.what(), err)
	}
	declared := in.Privileges
	if !known {
		declared = slices.Sorted(maps.Keys(have))
	}
	in.Role, in.On, in.Database = g.role, g.on, told(known, in.Database, g.database)
	in.Privileges, in.GrantOption = nil, false
	for _, p := range declared {
		if grantable, there := have[p]; there {
			in.Privileges, in.GrantOption = append(in.Privileges, p), in.GrantOption || grantable
		}
	}
	if len(in.Privileges) == 0 {
		return found, nil
	}
	parts := append(slices.Clone(g.names), "", "")
	in.Schema, in.Object = parts[0], parts[1]
	return provider.Found[GrantIn, GrantOut]{Ownership: provider.Owned, ID: g.id(), Inputs: in,
		Output: GrantOut{g.role, g.database}}, nil
}

// Delete revokes the privileges. Those of what is gone are gone.
func (o *Grant) Delete(ctx context.Context, r provider.Existing[GrantIn, GrantOut]) error {
	g, err := o.conn.grant(r.ID, r.Inputs)
	if err != nil {
		return err
	}
	s, err := g.dial(ctx, o.conn)
	if is(err, noDatabase) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.end()
	return failed(g.what(), g.bring(ctx, s, nil, r.Inputs.Privileges, false))
}
