package postgres

import (
	"context"

	"github.com/deployctl/deployctl/provider"
)

// Schema is deployctl:postgres:Schema.
type Schema struct{ conn *connection }

// SchemaIn declares a schema.
type SchemaIn struct {
	Name     string `pulumi:"name,autoname,replace" doc:"The name; without it, the resource's name and a random suffix."`
	Database string `pulumi:"database,optional,replace" doc:"The database that it is in; without it, deployctl:postgresDatabase."`
	Owner    string `pulumi:"owner,optional" doc:"The role that owns it; without it, the one that connects, and who owns it is not compared."`
	Comment  string `pulumi:"comment,optional" doc:"A text, which the mark of deployctl follows."`
	Cascade  bool   `pulumi:"cascade,optional" doc:"Whether a delete also drops what is in it; by default a schema that is not empty cannot be deleted."`
}

// SchemaOut describes a schema that exists.
type SchemaOut struct{ Out }

var schemas = kind{
	keyword: "SCHEMA", word: "schema",
	observe: `select pg_get_userbyid(nspowner), '', '', coalesce(obj_description(oid, 'pg_namespace'), '')
		from pg_namespace where nspname = $1`,
	list: `select nspname, coalesce(obj_description(oid, 'pg_namespace'), '') from pg_namespace order by nspname`,
}

// Describe is the type's text in the schema.
func (*Schema) Describe() string {
	return "A schema of a database of a PostgreSQL server. Its ID, for imports, is DATABASE/NAME."
}

// Naming are the rules for names that are made.
func (*Schema) Naming() provider.Naming { return naming }

// Check knows how long names may be.
func (*Schema) Check(_ context.Context, in provider.Inputs[SchemaIn]) []provider.Failure {
	return wrongNames(map[string]string{"name": in.Value.Name, "database": in.Value.Database, "owner": in.Value.Owner})
}

// Reconcile creates the schema, or changes what differs.
func (o *Schema) Reconcile(ctx context.Context, r provider.Request[SchemaIn, SchemaOut]) (string, SchemaOut, error) {
	var out SchemaOut
	named, database, err := o.conn.locate(r.ID, r.News.Name, r.News.Database)
	if err != nil {
		return "", out, err
	}
	p := part{kind: schemas, identity: identity{Identity: r.Identity, id: r.ID}, name: named, database: database,
		comment: r.News.Comment, create: "CREATE SCHEMA " + name(named)}
	if r.Output != nil {
		p.remembered = r.Output.Mark
	}
	if r.Olds != nil {
		p.before = r.Olds.Comment
	}
	owner := r.News.Owner
	if owner != "" {
		p.create += " AUTHORIZATION " + name(owner)
	}
	p.change = func(have *content) []string {
		if owner == "" || owner == have.Owner {
			return nil
		}
		return []string{"ALTER SCHEMA " + name(named) + " OWNER TO " + name(owner)}
	}
	if _, err := o.conn.reconcile(ctx, p); err != nil {
		return "", out, err
	}
	return joined(database, named), SchemaOut{Out{named, database, r.Owner()}}, nil
}

// Read answers by the ID, or by the names in the inputs.
func (o *Schema) Read(
	ctx context.Context, r provider.Lookup[SchemaIn, SchemaOut],
) (none provider.Found[SchemaIn, SchemaOut], err error) {
	in, known, who := SchemaIn{}, r.Inputs != nil, identity{Identity: r.Identity, id: r.ID}
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
	have, err := o.conn.look(ctx, schemas, named, database)
	if err != nil {
		return none, err
	}
	if have == nil {
		none.Ownership = provider.Absent
		return none, nil
	}
	comment := parseRemark(have.Comment)
	in.Name, in.Database = named, told(known, in.Database, database)
	in.Owner, in.Comment = told(known, in.Owner, have.Owner), told(known, in.Comment, comment.text)
	out := SchemaOut{Out{named, database, comment.stamp.Kept(r.Identity, who.remembered)}}
	return found(who, comment.stamp, joined(database, named), in, out), nil
}

// List tells the schemas with the stamp of a stack, of all databases.
func (o *Schema) List(ctx context.Context, stack provider.Identity, found func(id string) error) error {
	return o.conn.listDatabases(ctx, stack, schemas.list, found)
}

// Delete leaves a schema alone that another resource has taken over.
func (o *Schema) Delete(ctx context.Context, r provider.Existing[SchemaIn, SchemaOut]) error {
	return o.conn.drop(ctx, schemas, identity{r.Identity, r.ID, r.Output.Mark}, r.Inputs.Cascade)
}
