package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/stamp"
)

// Role is deployctl:postgres:Role.
type Role struct{ conn *connection }

// RoleIn declares a role.
type RoleIn struct {
	Name            string   `pulumi:"name,autoname,replace" doc:"The name; without it, the resource's name and a random suffix."`
	Password        string   `pulumi:"password,optional,secret" doc:"The password, of printable ASCII characters. The server gets a SCRAM verifier of it."`
	Login           bool     `pulumi:"login,optional" doc:"Whether it may connect."`
	Superuser       bool     `pulumi:"superuser,optional" doc:"Whether it may do everything."`
	CreateDatabase  bool     `pulumi:"createDatabase,optional" doc:"Whether it may create databases."`
	CreateRole      bool     `pulumi:"createRole,optional" doc:"Whether it may create roles."`
	Replication     bool     `pulumi:"replication,optional" doc:"Whether it may replicate the server."`
	BypassRLS       bool     `pulumi:"bypassRls,optional" doc:"Whether row-level security is not for it."`
	Inherit         *bool    `pulumi:"inherit" default:"true" doc:"Whether it has the rights of the roles that it is a member of."`
	ConnectionLimit *int     `pulumi:"connectionLimit" default:"-1" doc:"How many connections it may have; -1 is no limit."`
	MemberOf        []string `pulumi:"memberOf,optional" doc:"The roles that it is a member of, and no others; without it, they are not compared."`
	Comment         string   `pulumi:"comment,optional" doc:"A text, which the mark of deployctl follows."`
}

// RoleOut describes a role that exists.
type RoleOut struct {
	Name string `pulumi:"name" doc:"The name."`
	Mark string `pulumi:"mark" doc:"The mark that says that it is this resource's."`
}

func (o *RoleOut) mark() string {
	if o == nil {
		return ""
	}
	return o.Mark
}

// Describe is the type's text in the schema.
func (*Role) Describe() string {
	return "A role of a PostgreSQL server: a user or a group. Its ID, for imports, is its name."
}

// Naming are the rules for names that are made.
func (*Role) Naming() provider.Naming { return naming }

// Check knows what passwords a verifier can be made of.
func (*Role) Check(_ context.Context, in provider.Inputs[RoleIn]) []provider.Failure {
	failures := wrongNames(map[string]string{"name": in.Value.Name})
	if in.Value.Name == public {
		failures = append(failures, provider.Failure{Property: "name",
			Reason: "may not be public, which stands for all roles"})
	}
	if strings.ContainsFunc(in.Value.Password, func(r rune) bool { return r < ' ' || r > '~' }) {
		failures = append(failures, provider.Failure{Property: "password", Reason: "must be of printable ASCII characters"})
	}
	if limit := in.Value.ConnectionLimit; limit != nil && *limit < -1 {
		failures = append(failures, provider.Failure{Property: "connectionLimit", Reason: "must be at least -1"})
	}
	return failures
}

// role is what a server has of one.
type role struct {
	Login, Superuser, CreateDatabase, CreateRole, Replication, BypassRLS, Inherit bool

	Limit    int
	MemberOf []string
	Comment  string
	Open     bool    // whether the verifiers may be read
	Stored   *string `db:"-"` // the verifier, if they may
}

// attributes are the keywords of what differs; of a role that is not there, all.
func (in RoleIn) attributes(have *role) (keywords []string) {
	if have == nil {
		have = &role{Inherit: true, Limit: -1} // PostgreSQL's defaults
	}
	inherit := in.Inherit == nil || *in.Inherit
	for _, flag := range []struct {
		keyword  string
		is, want bool
	}{
		{"LOGIN", have.Login, in.Login}, {"SUPERUSER", have.Superuser, in.Superuser},
		{"CREATEDB", have.CreateDatabase, in.CreateDatabase}, {"CREATEROLE", have.CreateRole, in.CreateRole},
		{"REPLICATION", have.Replication, in.Replication}, {"BYPASSRLS", have.BypassRLS, in.BypassRLS},
		{"INHERIT", have.Inherit, inherit},
	} {
		switch {
		case flag.is == flag.want:
		case flag.want:
			keywords = append(keywords, flag.keyword)
		default:
			keywords = append(keywords, "NO"+flag.keyword)
		}
	}
	if in.ConnectionLimit != nil && *in.ConnectionLimit != have.Limit {
		keywords = append(keywords, strings.TrimSpace(limit(in.ConnectionLimit)))
	}
	return keywords
}

func observeRole(ctx context.Context, s *session, named string) (*role, error) {
	have, err := row[role](ctx, s, `select rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls,
		rolinherit, rolconnlimit, array(select g.rolname::text from pg_auth_members m join pg_roles g on g.oid = m.roleid
			where m.member = r.oid group by 1 order by 1),
		coalesce(shobj_description(oid, 'pg_authid'), ''), has_table_privilege('pg_catalog.pg_authid', 'select')
		from pg_roles r where rolname = $1`, named)
	if err != nil || have == nil || !have.Open {
		return have, err
	}
	type stored struct{ Verifier string }
	found, err := row[stored](ctx, s, "select coalesce(rolpassword, '') from pg_authid where rolname = $1", named)
	if found != nil {
		have.Stored = &found.Verifier
	}
	return have, err
}

// Reconcile creates the role with its stamp in one transaction, and changes what differs in another.
func (o *Role) Reconcile(ctx context.Context, r provider.Request[RoleIn, RoleOut]) (string, RoleOut, error) {
	s, err := o.conn.dial(ctx, "")
	if err != nil {
		return "", RoleOut{}, err
	}
	defer s.end()
	err = settled(func() error {
		have, err := observeRole(ctx, s, r.News.Name)
		if err != nil {
			return err
		}
		if have != nil {
			who := identity{r.Identity, r.ID, r.Output.mark()}
			if err := who.refuses(parseRemark(have.Comment).stamp, "role "+r.News.Name, r.News.Name); err != nil {
				return err
			}
		}
		statements, err := changeRole(r, have)
		if err != nil {
			return err
		}
		return s.apply(ctx, statements...)
	})
	if err != nil {
		return "", RoleOut{}, failed("role "+r.News.Name, err)
	}
	return r.News.Name, RoleOut{r.News.Name, r.Owner()}, nil
}

// changeRole are the statements that make a role as declared; have is nil if it is not there.
func changeRole(r provider.Request[RoleIn, RoleOut], have *role) (statements []string, err error) {
	var before RoleIn
	if r.Olds != nil {
		before = *r.Olds
	}
	quoted, keywords := name(r.News.Name), r.News.attributes(have)
	secret, err := changePassword(r, have)
	if err != nil {
		return nil, err
	}
	keywords = append(keywords, secret...)
	if have == nil {
		statements = append(statements, strings.Join(append([]string{"CREATE ROLE " + quoted}, keywords...), " "))
		have = &role{}
	} else if len(keywords) > 0 {
		statements = append(statements, "ALTER ROLE "+quoted+" "+strings.Join(keywords, " "))
	}
	comment := parseRemark(have.Comment).toBe(r.News.Comment, before.Comment, r.Identity).String()
	if comment != have.Comment {
		statements = append(statements, "COMMENT ON ROLE "+quoted+" IS "+literal(comment))
	}
	if r.News.MemberOf == nil && before.MemberOf == nil {
		return statements, nil
	}
	for _, group := range r.News.MemberOf {
		if !slices.Contains(have.MemberOf, group) {
			statements = append(statements, "GRANT "+name(group)+" TO "+quoted)
		}
	}
	for _, group := range have.MemberOf {
		if !slices.Contains(r.News.MemberOf, group) {
			statements = append(statements, "REVOKE "+name(group)+" FROM "+quoted)
		}
	}
	return statements, nil
}

// changePassword is the keyword for a password that the role does not have. Where nobody may see what it has, that is
// one that was not declared before, by this owner.
func changePassword(r provider.Request[RoleIn, RoleOut], have *role) ([]string, error) {
	want, before := r.News.Password, ""
	if r.Olds != nil {
		before = r.Olds.Password
	}
	visible := have != nil && have.Stored != nil
	switch {
	case want == "" && (before == "" || have == nil || visible && *have.Stored == ""):
		return nil, nil
	case want == "":
		return []string{"PASSWORD NULL"}, nil
	case visible && verifies(*have.Stored, want):
		return nil, nil
	case have != nil && !visible && want == before && parseRemark(have.Comment).stamp == stamp.For(r.Identity):
		return nil, nil
	}
	text, err := newVerifier(want)
	return []string{"PASSWORD " + literal(text)}, err
}

// Read answers by the ID, or by the name in the inputs.
func (o *Role) Read(
	ctx context.Context, r provider.Lookup[RoleIn, RoleOut],
) (none provider.Found[RoleIn, RoleOut], err error) {
	var in RoleIn
	if r.Inputs != nil {
		in = *r.Inputs
	}
	in.Name = cmp.Or(r.ID, in.Name)
	s, err := o.conn.dial(ctx, "")
	if err != nil {
		return none, err
	}
	defer s.end()
	have, err := observeRole(ctx, s, in.Name)
	if err != nil {
		return none, failed("role "+in.Name, err)
	}
	if have == nil {
		none.Ownership = provider.Absent
		return none, nil
	}
	comment, who := parseRemark(have.Comment), identity{r.Identity, r.ID, r.Output.mark()}
	seen := RoleIn{Name: in.Name, Login: have.Login, Superuser: have.Superuser, CreateDatabase: have.CreateDatabase,
		CreateRole: have.CreateRole, Replication: have.Replication, BypassRLS: have.BypassRLS, Inherit: &have.Inherit,
		ConnectionLimit: &have.Limit, Comment: told(r.Inputs != nil, in.Comment, comment.text)}
	if have.Stored == nil || verifies(*have.Stored, in.Password) {
		seen.Password = in.Password
	}
	switch {
	case r.Inputs == nil || in.MemberOf != nil && !sameNames(in.MemberOf, have.MemberOf):
		seen.MemberOf = have.MemberOf
	default:
		seen.MemberOf = in.MemberOf
	}
	return found(who, comment.stamp, in.Name, seen,
		RoleOut{in.Name, comment.stamp.Kept(r.Identity, who.remembered)}), nil
}

// sameNames compares without an order.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// List tells the roles with the stamp of a stack.
func (o *Role) List(ctx context.Context, stack provider.Identity, found func(id string) error) error {
	return o.conn.listServer(ctx, stack,
		`select rolname, coalesce(shobj_description(oid, 'pg_authid'), '') from pg_roles order by rolname`, found)
}

// Delete leaves a role alone that another resource has taken over.
func (o *Role) Delete(ctx context.Context, r provider.Existing[RoleIn, RoleOut]) error {
	s, err := o.conn.dial(ctx, "")
	if err != nil {
		return err
	}
	defer s.end()
	have, err := observeRole(ctx, s, r.ID)
	if err != nil || have == nil || parseRemark(have.Comment).stamp.Lost(r.Identity, r.Output.Mark) {
		return failed("role "+r.ID, err)
	}
	err = s.apply(ctx, "DROP ROLE IF EXISTS "+name(r.ID))
	if is(err, needed) {
		quoted := name(r.ID)
		return failed("role "+r.ID, err, "in each of these databases give away what it owns, with REASSIGN OWNED BY "+quoted+
			" TO another role, and take back what it may, with DROP OWNED BY "+quoted+"; then update again")
	}
	return failed("role "+r.ID, err)
}
