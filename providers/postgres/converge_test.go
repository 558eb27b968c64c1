package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/provider/providertest"
	"github.com/deployctl/deployctl/providers/postgres"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// played begins the names of what providertest plays with; within is the database of what is in one.
const played, within = "played", "played_in"

// start empties the server of what was played before. Stay are names that stay.
func start(unmarked func(t *testing.T, in map[string]any), stay ...string) providertest.Start {
	return func(t *testing.T, calls *providertest.Calls) providertest.Setup {
		t.Helper()
		// What is made aside is not among the things: of two stacks that make a database at once, the later has one.
		if left := ask(t, "", "select datname from pg_database where datname like 'deployctl-%'"); len(left) > 0 {
			t.Errorf("what was played before leaves %q", left)
		}
		empty(t, stay...)
		setup := providertest.Setup{
			Package: func() provider.Package {
				return provider.Package{Name: "deployctl", Version: "0.0.1",
					Modules: []provider.Module{postgres.ModuleThrough(calls.Do)}}
			},
			Config: settings(t),
			Things: func() map[string]any { return things(t, slices.Contains(stay, within)) },
		}
		if unmarked != nil {
			setup.Unmarked = func(in resource.PropertyMap) { unmarked(t, in.Mappable()) }
		}
		return setup
	}
}

// empty removes what was played with, and what was left unfinished.
func empty(t *testing.T, stay ...string) {
	t.Helper()
	for _, d := range ask(t, "", `select datname from pg_database where datname like 'played%' or datname like 'deployctl-%'`) {
		if !slices.Contains(stay, d) {
			ask(t, "", `drop database "`+d+`" with (force)`)
		}
	}
	if slices.Contains(stay, within) {
		if len(ask(t, "", "select 1 from pg_database where datname = '"+within+"'")) == 0 {
			ask(t, "", "create database "+within)
		}
		ask(t, within, `drop extension if exists hstore; drop extension if exists citext;
			drop schema if exists played_schema cascade; drop schema if exists played_other cascade;
			drop schema if exists apart cascade; create schema apart; create table apart.orders(id int);
			create table apart.others(id int)`)
	}
	for _, r := range ask(t, "", `select rolname from pg_roles where rolname like 'played%'`) {
		if !slices.Contains(stay, r) {
			ask(t, "", `drop role "`+r+`"`)
		}
	}
	for _, r := range stay {
		if r != within && len(ask(t, "", "select 1 from pg_roles where rolname = '"+r+"'")) == 0 {
			ask(t, "", "create role "+r)
		}
	}
}

// things are all databases, roles, schemas, extensions and rights that are played with.
func things(t *testing.T, inside bool) map[string]any {
	all := map[string]any{}
	add := func(kind, database, sql string) {
		for _, line := range ask(t, database, sql) {
			name, rest, _ := strings.Cut(line, " ")
			all[kind+" "+name] = rest
		}
	}
	add("database", "", `select datname, pg_get_userbyid(datdba), pg_encoding_to_char(encoding), datcollate, datconnlimit,
		shobj_description(oid, 'pg_database') from pg_database where datname like 'played%'`)
	add("role", "", `select rolname, rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls,
		rolinherit, rolconnlimit, array(select g.rolname from pg_auth_members m join pg_roles g on g.oid = m.roleid
		where m.member = r.oid order by 1), shobj_description(oid, 'pg_authid') from pg_roles r where rolname like 'played%'`)
	for _, line := range ask(t, "", `select rolname, rolpassword from pg_authid where rolname like 'played%'`) {
		name, stored, _ := strings.Cut(line, " ")
		for _, password := range []string{firstPassword, secondPassword} {
			if postgres.Verifies(stored, password) {
				all["password of "+name] = password
			}
		}
	}
	if inside {
		add("schema", within, `select nspname, pg_get_userbyid(nspowner), obj_description(oid, 'pg_namespace')
			from pg_namespace where nspname like 'played%'`)
		add("extension", within, `select extname, extversion, extnamespace::regnamespace, obj_description(oid, 'pg_extension')
			from pg_extension where extname <> 'plpgsql'`)
		add("rights", within, `select relname,
			array(select a::text from unnest(coalesce(relacl, acldefault('r', relowner))) a order by 1) from pg_class where relnamespace = 'apart'::regnamespace`)
	}
	return all
}

const firstPassword, secondPassword = "the first pass'word", "the second password"

func TestDatabasesConverge(t *testing.T) {
	soaktest.Only(t)
	const owner = "played_owner"
	providertest.Run(t, start(func(t *testing.T, in map[string]any) {
		ask(t, "", "create database "+in["name"].(string))
	}, owner), providertest.Case{
		Type: "deployctl:postgres:Database",
		Inputs: providertest.Inputs{"name": played + "_db", "encoding": "utf-8", "locale": "C", "template": "template0",
			"owner": "postgres", "comment": "it's a comment\nof two lines"},
		Change:  providertest.Inputs{"owner": owner, "connectionLimit": 0, "comment": "another", "force": true},
		Replace: providertest.Inputs{"encoding": "LATIN1"},
		Unseen:  []string{"force", "template"},
	})
}

func TestRolesConverge(t *testing.T) {
	const group, other = "played_group", "played_others"
	providertest.Run(t, start(func(t *testing.T, in map[string]any) {
		ask(t, "", "create role "+in["name"].(string)+" createdb; comment on role "+in["name"].(string)+" is 'by hand'")
	}, group, other), providertest.Case{
		Type: "deployctl:postgres:Role",
		Inputs: providertest.Inputs{"name": "played_role", "login": true, "password": providertest.Secret(firstPassword),
			"memberOf": []any{group}, "comment": "a comment"},
		Change: providertest.Inputs{"password": providertest.Secret(secondPassword), "inherit": false, "connectionLimit": 3,
			"createDatabase": true, "memberOf": []any{other}, "comment": "another"},
		Replace: providertest.Inputs{"name": "played_role2"},
	})
}

func TestSchemasConverge(t *testing.T) {
	const owner = "played_owner"
	providertest.Run(t, start(func(t *testing.T, in map[string]any) {
		ask(t, within, "create schema "+in["name"].(string))
	}, within, owner), providertest.Case{
		Type: "deployctl:postgres:Schema",
		Inputs: providertest.Inputs{"name": "played_schema", "database": within, "owner": "postgres",
			"comment": "a comment"},
		Change:  providertest.Inputs{"owner": owner, "comment": "another", "cascade": true},
		Replace: providertest.Inputs{"name": "played_other"},
		Unseen:  []string{"cascade"},
		Needed:  []string{"database"}, // without it, it is another one's
	})
}

func TestExtensionsConverge(t *testing.T) {
	withHstore(t)
	providertest.Run(t, start(func(t *testing.T, _ map[string]any) {
		ask(t, within, "create extension hstore version '1.7' schema public")
	}, within), providertest.Case{
		Type: "deployctl:postgres:Extension",
		Inputs: providertest.Inputs{"name": "hstore", "database": within, "version": "1.7", "schema": "public",
			"comment": "a comment"},
		Change:  providertest.Inputs{"schema": "apart", "comment": "another", "cascade": true},
		Replace: providertest.Inputs{"name": "citext", "version": "1.6"},
		Unseen:  []string{"cascade"},
		Needed:  []string{"database"}, // without it, it is another one's
	})
}

func withHstore(t *testing.T) {
	t.Helper()
	if len(ask(t, "", `select 1 from pg_available_extension_versions where (name, version) in
		(('hstore', '1.7'), ('hstore', '1.8'), ('citext', '1.6'))`)) < 3 {
		t.Skip("the server has no hstore and citext of these versions: install Debian's package postgresql-contrib")
	}
}

func TestGrantsConverge(t *testing.T) {
	const reader = "played_reader"
	providertest.Run(t, start(func(t *testing.T, _ map[string]any) {
		ask(t, within, "grant insert on apart.orders to "+reader)
	}, within, reader), providertest.Case{
		Type: "deployctl:postgres:Grant", Shared: true,
		Inputs: providertest.Inputs{"role": reader, "on": "table", "database": within, "schema": "apart", "object": "orders",
			"privileges": []any{"SELECT", "INSERT"}},
		Change:  providertest.Inputs{"privileges": []any{"INSERT"}, "grantOption": true},
		Replace: providertest.Inputs{"object": "others"},
		Needed:  []string{"database"},
	})
}
