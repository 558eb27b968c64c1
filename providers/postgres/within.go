package postgres

import (
	"cmp"
	"context"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/stamp"
)

// kind is a type of what is in a database and has a name and a comment there: a schema, an extension.
type kind struct {
	keyword string // SCHEMA
	word    string // schema, for people
	observe string // the query of one
	list    string // the query of names and comments
}

// Out describes what is in a database.
type Out struct {
	Name     string `pulumi:"name" doc:"The name."`
	Database string `pulumi:"database" doc:"The database that it is in."`
	Mark     string `pulumi:"mark" doc:"The mark that says that it is this resource's."`
}

// part is a resource in a database: what it has of the engine, and what it declares.
type part struct {
	kind
	identity
	name, database string
	comment        string
	before         string // the comment of the last success
	create         string
	change         func(have *content) []string
}

// content is what a server has of a part: the owner of a schema, the version and the schema of an extension.
type content struct{ Owner, Version, Schema, Comment string }

// locate returns where a part is: as its ID says, or as its inputs do.
func (c *connection) locate(id, named, database string) (string, string, error) {
	if id != "" {
		names, err := split(id)
		if err == nil && len(names) != 2 {
			err = plainf("the ID is DATABASE/NAME, and %q is not", id)
		}
		if err != nil {
			return "", "", err
		}
		return names[1], names[0], nil
	}
	config, _, err := c.get()
	if err != nil {
		return "", "", err
	}
	return named, cmp.Or(database, config.Database), nil
}

// reconcile creates a part with its stamp in one transaction, and changes what differs in another.
func (c *connection) reconcile(ctx context.Context, p part) (have *content, err error) {
	s, err := c.dial(ctx, p.database)
	if err != nil {
		return nil, err
	}
	defer s.end()
	what, on := p.word+" "+p.name, p.keyword+" "+name(p.name)
	err = settled(func() error {
		have, err = row[content](ctx, s, p.observe, p.name)
		if err != nil {
			return err
		}
		if have == nil {
			if err := s.apply(ctx, p.create, p.commentOn(on, p.comment)); err != nil {
				return err
			}
			if have, err = row[content](ctx, s, p.observe, p.name); err != nil {
				return err
			}
			if have == nil {
				return &provider.Unknown{Err: plainf("%s comes and goes", what)}
			}
		}
		old := parseRemark(have.Comment)
		if err := p.refuses(old.stamp, what, joined(p.database, p.name)); err != nil {
			return err
		}
		var statements []string
		if text := old.toBe(p.comment, p.before, p.Identity); text.String() != have.Comment {
			statements = append(statements, p.commentOn(on, text.text))
		}
		return s.apply(ctx, append(statements, p.change(have)...)...)
	})
	return have, failed(what, err)
}

func (p part) commentOn(on, text string) string {
	return "COMMENT ON " + on + " IS " + literal(remark{text, stamp.For(p.Identity)}.String())
}

// look reads a part. A database that is not there has none.
func (c *connection) look(ctx context.Context, k kind, named, database string) (*content, error) {
	s, err := c.dial(ctx, database)
	if is(err, noDatabase) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer s.end()
	have, err := row[content](ctx, s, k.observe, named)
	return have, failed(k.word+" "+named, err)
}

// drop removes a part, unless another resource has taken it over.
func (c *connection) drop(ctx context.Context, k kind, who identity, cascade bool) error {
	named, database, err := c.locate(who.id, "", "")
	if err != nil {
		return err
	}
	s, err := c.dial(ctx, database)
	if is(err, noDatabase) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.end()
	have, err := row[content](ctx, s, k.observe, named)
	if err != nil || have == nil || parseRemark(have.Comment).stamp.Lost(who.Identity, who.remembered) {
		return failed(k.word+" "+named, err)
	}
	sql := "DROP " + k.keyword + " IF EXISTS " + name(named)
	if cascade {
		sql += " CASCADE"
	}
	err = s.apply(ctx, sql)
	if is(err, needed) {
		return failed(k.word+" "+named, err, "drop these first, or set cascade: true and update first")
	}
	return failed(k.word+" "+named, err)
}
