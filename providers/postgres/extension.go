package postgres

import (
	"context"

	"github.com/deployctl/deployctl/provider"
)

// Extension is deployctl:postgres:Extension.
type Extension struct{ conn *connection }

// ExtensionIn declares an extension.
type ExtensionIn struct {
	Name     string `pulumi:"name,replace" doc:"The extension, such as pgcrypto."`
	Database string `pulumi:"database,optional,replace" doc:"The database that it is in; without it, deployctl:postgresDatabase."`
	Schema   string `pulumi:"schema,optional" doc:"The schema that its objects are in; without it, the first one of the search path, and it is not compared."`
	Version  string `pulumi:"version,optional" doc:"The version; without it, the server's default, and it stays as it is."`
	Comment  string `pulumi:"comment,optional" doc:"A text, which the mark of deployctl follows."`
	Cascade  bool   `pulumi:"cascade,optional" doc:"Whether a delete also drops what uses it, such as columns of its types."`
}

// ExtensionOut describes an extension that exists.
type ExtensionOut struct {
	Out
	Version string `pulumi:"version" doc:"The version."`
	Schema  string `pulumi:"schema" doc:"The schema that its objects are in."`
}

var extensions = kind{
	keyword: "EXTENSION", word: "extension",
	observe: `select '', e.extversion, n.nspname, coalesce(obj_description(e.oid, 'pg_extension'), '')
		from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = $1`,
	list: `select extname, coalesce(obj_description(oid, 'pg_extension'), '') from pg_extension order by extname`,
}

// Describe is the type's text in the schema.
func (*Extension) Describe() string {
	return "An extension of a database of a PostgreSQL server, which the server must have installed. Its ID, for " +
		"imports, is DATABASE/NAME."
}

// Check knows how long names may be.
func (*Extension) Check(_ context.Context, in provider.Inputs[ExtensionIn]) []provider.Failure {
	failures := wrongNames(map[string]string{"name": in.Value.Name, "database": in.Value.Database,
		"schema": in.Value.Schema})
	if in.Value.Name == "" && in.Known("name") {
		failures = append(failures, provider.Failure{Property: "name", Reason: "may not be empty"})
	}
	return failures
}

// Reconcile creates the extension, or changes what differs.
func (o *Extension) Reconcile(
	ctx context.Context, r provider.Request[ExtensionIn, ExtensionOut],
) (string, ExtensionOut, error) {
	var out ExtensionOut
	named, database, err := o.conn.locate(r.ID, r.News.Name, r.News.Database)
	if err != nil {
		return "", out, err
	}
	p := part{kind: extensions, identity: identity{Identity: r.Identity, id: r.ID}, name: named, database: database,
		comment: r.News.Comment, create: "CREATE EXTENSION " + name(named)}
	if r.Output != nil {
		p.remembered = r.Output.Mark
	}
	if r.Olds != nil {
		p.before = r.Olds.Comment
	}
	schema, version := r.News.Schema, r.News.Version
	if schema != "" {
		p.create += " SCHEMA " + name(schema)
	}
	if version != "" {
		p.create += " VERSION " + literal(version)
	}
	p.change = func(have *content) (statements []string) {
		if version != "" && version != have.Version {
			statements = append(statements, "ALTER EXTENSION "+name(named)+" UPDATE TO "+literal(version))
			have.Version = version
		}
		if schema != "" && schema != have.Schema {
			statements = append(statements, "ALTER EXTENSION "+name(named)+" SET SCHEMA "+name(schema))
			have.Schema = schema
		}
		return statements
	}
	have, err := o.conn.reconcile(ctx, p)
	if err != nil {
		return "", out, err
	}
	return joined(database, named), ExtensionOut{Out{named, database, r.Owner()}, have.Version, have.Schema}, nil
}

// Read answers by the ID, or by the names in the inputs.
func (o *Extension) Read(
	ctx context.Context, r provider.Lookup[ExtensionIn, ExtensionOut],
) (none provider.Found[ExtensionIn, ExtensionOut], err error) {
	in, known, who := ExtensionIn{}, r.Inputs != nil, identity{Identity: r.Identity, id: r.ID}
	if known {
		in = *r.Inputs
	}
	if r.Output != nil {
		who.remembered = r.Output.Mark
	}
	named, database, err := o.conn.locate(r.ID, in.Name, in.Database)
	if err != nil {
		return none, err
	}
	have, err := o.conn.look(ctx, extensions, named, database)
	if err != nil {
		return none, err
	}
	if have == nil {
		none.Ownership = provider.Absent
		return none, nil
	}
	comment := parseRemark(have.Comment)
	in.Name, in.Database = named, told(known, in.Database, database)
	in.Schema, in.Version = told(known, in.Schema, have.Schema), told(known, in.Version, have.Version)
	in.Comment = told(known, in.Comment, comment.text)
	out := ExtensionOut{Out{named, database, comment.stamp.Kept(r.Identity, who.remembered)}, have.Version, have.Schema}
	return found(who, comment.stamp, joined(database, named), in, out), nil
}

// List tells the extensions with the stamp of a stack, of all databases.
func (o *Extension) List(ctx context.Context, stack provider.Identity, found func(id string) error) error {
	return o.conn.listDatabases(ctx, stack, extensions.list, found)
}

// Delete leaves an extension alone that another resource has taken over.
func (o *Extension) Delete(ctx context.Context, r provider.Existing[ExtensionIn, ExtensionOut]) error {
	return o.conn.drop(ctx, extensions, identity{r.Identity, r.ID, r.Output.Mark}, r.Inputs.Cascade)
}
