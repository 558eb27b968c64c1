package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/stamp"
)

// Database is deployctl:postgres:Database.
type Database struct{ conn *connection }

// DatabaseIn declares a database.
type DatabaseIn struct {
	Name            string `pulumi:"name,autoname,replace" doc:"The name; without it, the resource's name and a random suffix."`
	Owner           string `pulumi:"owner,optional" doc:"The role that owns it; without it, the one that connects, and who owns it is not compared."`
	Encoding        string `pulumi:"encoding,optional,replace" doc:"The encoding, such as UTF8; without it, that of the template."`
	Locale          string `pulumi:"locale,optional,replace" doc:"The locale of collation and character types, such as C.UTF-8; without it, that of the template."`
	Template        string `pulumi:"template,optional,replace" doc:"The database that it is a copy of; without it template1, or template0 if an encoding or a locale is given."`
	ConnectionLimit *int   `pulumi:"connectionLimit" default:"-1" doc:"How many connections it may have; -1 is no limit."`
	Comment         string `pulumi:"comment,optional" doc:"A text, which the mark of deployctl follows."`
	Force           bool   `pulumi:"force,optional" doc:"Whether a delete ends the connections to it; by default it waits until there are none."`
}

// DatabaseOut describes a database that exists.
type DatabaseOut struct {
	Name     string `pulumi:"name" doc:"The name."`
	Encoding string `pulumi:"encoding" doc:"The encoding."`
	Locale   string `pulumi:"locale" doc:"The locale of collation."`
	Mark     string `pulumi:"mark" doc:"The mark that says that it is this resource's."`
}

func (o *DatabaseOut) mark() string {
	if o == nil {
		return ""
	}
	return o.Mark
}

// Describe is the type's text in the schema.
func (*Database) Describe() string {
	return "A database of a PostgreSQL server. Its ID, for imports, is its name. A change of what PostgreSQL cannot " +
		"change replaces it, with all that is in it: consider the resource option protect."
}

// Naming are the rules for names that are made.
func (*Database) Naming() provider.Naming { return naming }

// Check knows how long names may be.
func (*Database) Check(_ context.Context, in provider.Inputs[DatabaseIn]) []provider.Failure {
	failures := wrongNames(map[string]string{"name": in.Value.Name, "owner": in.Value.Owner,
		"template": in.Value.Template})
	if limit := in.Value.ConnectionLimit; limit != nil && *limit < -1 {
		failures = append(failures, provider.Failure{Property: "connectionLimit", Reason: "must be at least -1"})
	}
	return failures
}

// Diff deletes the old one first if the new one has its name.
func (*Database) Diff(
	_ context.Context, r provider.Request[DatabaseIn, DatabaseOut],
) (change provider.Change, err error) {
	if r.Olds == nil {
		return change, plainf("the inputs of the last success are not known")
	}
	was, is := reflect.ValueOf(*r.Olds), reflect.ValueOf(r.News)
	for i := range was.NumField() {
		property, options, _ := strings.Cut(was.Type().Field(i).Tag.Get("pulumi"), ",")
		switch {
		case r.Known(property) && reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()):
		case strings.Contains(options, "replace"):
			change.Replaces = append(change.Replaces, property)
		default:
			change.Updates = append(change.Updates, property)
		}
	}
	change.DeleteFirst = len(change.Replaces) > 0 && !slices.Contains(change.Replaces, "name")
	return change, nil
}

// database is what a server has of one.
type database struct {
	Name, Owner, Encoding, Locale string
	Limit                         int
	Comment                       string
}

// halfDropped is the limit of a database whose DROP was interrupted, and which can only be dropped.
const halfDropped = -2

// unfinished is the name of a database that is not yet complete, and which nobody else makes. It is shorter than a name
// may be.
func unfinished(who provider.Identity) string {
	_, digest, _ := strings.Cut(stamp.For(who).Stack, "@")
	return "deployctl-" + who.Owner() + "-" + digest
}

// unfinishedOf says whether a name is that of a database of the stack that is not complete.
func unfinishedOf(name string, stack provider.Identity) bool {
	_, digest, _ := strings.Cut(stamp.For(stack).Stack, "@")
	return digest != "" && strings.HasPrefix(name, "deployctl-") && strings.HasSuffix(name, "-"+digest)
}

// observeDatabases returns those of the names that exist, by name.
func observeDatabases(ctx context.Context, s *session, names ...string) (map[string]*database, error) {
	all, err := rows[database](ctx, s, `select d.datname, r.rolname, pg_encoding_to_char(d.encoding), d.datcollate,
		d.datconnlimit, coalesce(shobj_description(d.oid, 'pg_database'), '')
		from pg_database d join pg_roles r on r.oid = d.datdba where d.datname = any($1::text[])`, names)
	byName := map[string]*database{}
	for _, d := range all {
		byName[d.Name] = d
	}
	return byName, err
}

// Reconcile makes a database under a name of its own, then sets its stamp and its name in one transaction: nobody sees
// it without the stamp under its name, so who finds one there knows whose it is.
func (d *Database) Reconcile(
	ctx context.Context, r provider.Request[DatabaseIn, DatabaseOut],
) (string, DatabaseOut, error) {
	s, err := d.conn.dial(ctx, "")
	if err != nil {
		return "", DatabaseOut{}, err
	}
	defer s.end()
	var have *database
	err = settled(func() (err error) {
		have, err = ensureDatabase(ctx, s, r)
		if err == nil {
			err = syncDatabase(ctx, s, r, have)
		}
		return err
	})
	if err != nil {
		return "", DatabaseOut{}, failed("database "+r.News.Name, err)
	}
	return r.News.Name, DatabaseOut{r.News.Name, spelled(r.News.Encoding, have.Encoding),
		spelled(r.News.Locale, have.Locale), r.Owner()}, nil
}

// ensureDatabase returns the database, which exists afterwards and is ours.
func ensureDatabase(
	ctx context.Context, s *session, r provider.Request[DatabaseIn, DatabaseOut],
) (*database, error) {
	aside, who := unfinished(r.Identity), identity{r.Identity, r.ID, r.Output.mark()}
	all, err := observeDatabases(ctx, s, r.News.Name, aside)
	if err != nil {
		return nil, err
	}
	if all[aside] != nil { // of an earlier attempt, maybe with other inputs
		if err := s.apply(ctx, "DROP DATABASE IF EXISTS "+name(aside)); err != nil {
			return nil, err
		}
	}
	have := all[r.News.Name]
	if have != nil {
		mark := parseRemark(have.Comment).stamp
		if err := who.refuses(mark, "database "+r.News.Name, r.News.Name); err != nil {
			return nil, err
		}
		if have.Limit != halfDropped {
			return have, nil
		}
		if err := s.apply(ctx, "DROP DATABASE IF EXISTS "+name(r.News.Name)); err != nil {
			return nil, err
		}
	}
	if err := s.apply(ctx, createDatabase(aside, r.News)); err != nil {
		return nil, err
	}
	comment := remark{text: r.News.Comment, stamp: stamp.For(r.Identity)}
	if err := s.apply(ctx, "COMMENT ON DATABASE "+name(aside)+" IS "+literal(comment.String()),
		"ALTER DATABASE "+name(aside)+" RENAME TO "+name(r.News.Name)); err != nil {
		return nil, err
	}
	if all, err = observeDatabases(ctx, s, r.News.Name); err == nil && all[r.News.Name] == nil {
		err = &provider.Unknown{Err: fmt.Errorf("database %s comes and goes", r.News.Name)}
	}
	return all[r.News.Name], err
}

func createDatabase(as string, in DatabaseIn) string {
	sql := "CREATE DATABASE " + name(as)
	template := in.Template
	if in.Encoding != "" || in.Locale != "" {
		template = cmp.Or(template, "template0")
	}
	if in.Owner != "" {
		sql += " OWNER " + name(in.Owner)
	}
	if template != "" {
		sql += " TEMPLATE " + name(template)
	}
	if in.Encoding != "" {
		sql += " ENCODING " + literal(in.Encoding)
	}
	if in.Locale != "" {
		sql += " LOCALE " + literal(in.Locale)
	}
	return sql + limit(in.ConnectionLimit)
}

func limit(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf(" CONNECTION LIMIT %d", *n)
}

// syncDatabase changes what differs. The owner is last, for he may be the only one who may change it.
func syncDatabase(
	ctx context.Context, s *session, r provider.Request[DatabaseIn, DatabaseOut], have *database,
) error {
	var (
		statements []string
		before     string
	)
	if r.Olds != nil {
		before = r.Olds.Comment
	}
	alter := "ALTER DATABASE " + name(r.News.Name)
	if comment := parseRemark(have.Comment).toBe(r.News.Comment, before, r.Identity).String(); comment != have.Comment {
		statements = append(statements, "COMMENT ON DATABASE "+name(r.News.Name)+" IS "+literal(comment))
	}
	if want := r.News.ConnectionLimit; want != nil && *want != have.Limit {
		statements = append(statements, alter+limit(want))
	}
	if owner := r.News.Owner; owner != "" && owner != have.Owner {
		statements = append(statements, alter+" OWNER TO "+name(owner))
	}
	return s.apply(ctx, statements...)
}

// Read answers by the ID, or by the name in the inputs. One that was not completed does not count.
func (d *Database) Read(
	ctx context.Context, r provider.Lookup[DatabaseIn, DatabaseOut],
) (none provider.Found[DatabaseIn, DatabaseOut], err error) {
	var in DatabaseIn
	if r.Inputs != nil {
		in = *r.Inputs
	}
	in.Name = cmp.Or(r.ID, in.Name)
	s, err := d.conn.dial(ctx, "")
	if err != nil {
		return none, err
	}
	defer s.end()
	all, err := observeDatabases(ctx, s, in.Name)
	if err != nil {
		return none, failed("database "+in.Name, err)
	}
	have := all[in.Name]
	if have == nil {
		none.Ownership = provider.Absent
		return none, nil
	}
	known, comment := r.Inputs != nil, parseRemark(have.Comment)
	who := identity{r.Identity, r.ID, r.Output.mark()}
	in.Owner = told(known, in.Owner, have.Owner)
	in.Encoding = spelled(in.Encoding, told(known, in.Encoding, have.Encoding))
	in.Locale = spelled(in.Locale, told(known, in.Locale, have.Locale))
	in.ConnectionLimit = &have.Limit
	in.Comment = told(known, in.Comment, comment.text)
	return found(who, comment.stamp, in.Name, in, DatabaseOut{in.Name,
		spelled(in.Encoding, have.Encoding), spelled(in.Locale, have.Locale),
		comment.stamp.Kept(r.Identity, who.remembered)}), nil
}

// spelled is what a server has, as it was declared if that is only another spelling: utf-8 is UTF8.
func spelled(declared, have string) string {
	plain := func(text string) string {
		return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(text))
	}
	if plain(declared) == plain(have) {
		return declared
	}
	return have
}

// List tells the databases with the stamp of a stack, and those that it has not completed.
func (d *Database) List(ctx context.Context, stack provider.Identity, found func(id string) error) error {
	return d.conn.listServer(ctx, stack,
		`select datname, coalesce(shobj_description(oid, 'pg_database'), '') from pg_database order by datname`, found)
}

// Delete leaves a database alone that another resource has taken over.
func (d *Database) Delete(ctx context.Context, r provider.Existing[DatabaseIn, DatabaseOut]) error {
	s, err := d.conn.dial(ctx, "")
	if err != nil {
		return err
	}
	defer s.end()
	all, err := observeDatabases(ctx, s, r.ID, unfinished(r.Identity))
	if err != nil {
		return failed("database "+r.ID, err)
	}
	if have := all[r.ID]; have != nil && parseRemark(have.Comment).stamp.Lost(r.Identity, r.Output.Mark) {
		delete(all, r.ID)
	}
	for _, n := range slices.Sorted(maps.Keys(all)) {
		sql := "DROP DATABASE IF EXISTS " + name(n)
		if r.Inputs.Force {
			sql += " WITH (FORCE)"
		}
		err := s.apply(ctx, sql)
		if is(err, "55006") {
			return failed("database "+n, err, "close its connections, or set force: true and update first")
		}
		if err != nil {
			return failed("database "+n, err)
		}
	}
	return nil
}
