package postgres_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/provider/providertest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"gopkg.in/yaml.v3"
)

const (
	aDatabase   = "deployctl:postgres:Database"
	aRole       = "deployctl:postgres:Role"
	aSchema     = "deployctl:postgres:Schema"
	aGrant      = "deployctl:postgres:Grant"
	anExtension = "deployctl:postgres:Extension"
)

func TestThePasswordIsNotInTheServersLogAndOpensTheDoor(t *testing.T) {
	e := engineFor(t, aRole, settings(t))
	empty(t)
	in := providertest.Inputs{"name": "played_login", "login": true, "password": providertest.Secret(firstPassword)}
	made, err := e.create(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := try(t, "played_login", firstPassword, "", "select 1"); err != nil {
		t.Error(err)
	}
	if _, err := try(t, "played_login", secondPassword, "", "select 1"); err == nil {
		t.Error("another password opens the door, too")
	}
	log, err := os.ReadFile(server(t).Log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "CREATE ROLE \"played_login\"") {
		t.Error("the log does not have the statement")
	}
	if strings.Contains(string(log), "the first pass") {
		t.Error("the log has the password")
	}
	if _, ok := made.GetProperties().GetFields()["password"]; ok {
		t.Error("the password is an output")
	}
	gone := over(in, providertest.Inputs{"password": nil})
	if err := e.update("played_login", in, gone); err != nil {
		t.Error(err)
	}
	if stored := ask(t, "", "select rolpassword is null from pg_authid where rolname = 'played_login'"); stored[0] != "t" {
		t.Error("a password that is taken out of the program stays")
	}
}

// TestWhoMayNotReadVerifiersSetsAPasswordThatChanged plays a role that is no superuser.
func TestWhoMayNotReadVerifiersSetsAPasswordThatChanged(t *testing.T) {
	empty(t)
	ask(t, "", "create role played_admin login createrole createdb password 'of the admin'")
	config := over(settings(t), providertest.Inputs{"postgresUser": "played_admin",
		"postgresPassword": providertest.Secret("of the admin")})
	e := engineFor(t, aRole, config)
	in := providertest.Inputs{"name": "played_login", "login": true, "password": providertest.Secret(firstPassword)}
	if _, err := e.create(in); err != nil {
		t.Fatal(err)
	}
	verifier := func() string {
		return ask(t, "", "select rolpassword from pg_authid where rolname = 'played_login'")[0]
	}
	before := verifier()
	if err := e.update("played_login", in, over(in, providertest.Inputs{"comment": "x"})); err != nil {
		t.Fatal(err)
	}
	if verifier() != before {
		t.Error("a password that is as it was is set again")
	}
	if ownership, found := e.read("played_login", in); ownership != provider.Owned || !found["password"].HasValue() {
		t.Errorf("it is %s, with the password %v", ownership, found["password"])
	}
	if err := e.update("played_login", in, over(in, providertest.Inputs{"password": secondPassword})); err != nil {
		t.Fatal(err)
	}
	if verifier() == before {
		t.Error("a password that has changed is not set")
	}
	err := engineFor(t, aRole, config).update("played_login", in, over(in, providertest.Inputs{"superuser": true}))
	if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "lacks the right") ||
		!strings.Contains(err.Error(), "SQLSTATE 42501") {
		t.Errorf("what is forbidden ends with %v", err)
	}
}

func TestWhatCannotBeDeletedSaysWhatToDo(t *testing.T) {
	empty(t)
	roles, databases, schemas := engineFor(t, aRole, settings(t)), engineFor(t, aDatabase, settings(t)),
		engineFor(t, aSchema, settings(t))
	owner := providertest.Inputs{"name": "played_owner"}
	db := providertest.Inputs{"name": "played_db", "owner": "played_owner"}
	schema := providertest.Inputs{"name": "played_schema", "database": "played_db"}
	for _, c := range []struct {
		engine
		in providertest.Inputs
	}{{roles, owner}, {databases, db}, {schemas, schema}} {
		if _, err := c.create(c.in); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, "played_db", "create table played_schema.t(id int)")
	err := schemas.delete("played_db/played_schema", schema)
	if err == nil || !strings.Contains(err.Error(), "set cascade: true") ||
		!strings.Contains(err.Error(), "table played_schema.t") {
		t.Errorf("a schema with a table: %v", err)
	}
	schema["cascade"] = true
	if err := schemas.delete("played_db/played_schema", schema); err != nil {
		t.Error(err)
	}
	err = roles.delete("played_owner", owner)
	if err == nil || !strings.Contains(err.Error(), `REASSIGN OWNED BY "played_owner"`) ||
		!strings.Contains(err.Error(), "owner of database played_db") {
		t.Errorf("a role that owns a database: %v", err)
	}
	db["force"] = true // the test's own session is open
	for _, err := range []error{databases.delete("played_db", db), databases.delete("played_db", db),
		schemas.delete("played_db/played_schema", schema), roles.delete("played_owner", owner)} {
		if err != nil {
			t.Error(err)
		}
	}
	if ownership, _ := schemas.read("played_db/played_schema", schema); ownership != provider.Absent {
		t.Errorf("a schema of a database that is gone is %s", ownership)
	}
}

func TestADatabaseIsFinishedWhateverAnEarlierAttemptHasLeft(t *testing.T) {
	empty(t)
	e := engineFor(t, aDatabase, settings(t))
	in := providertest.Inputs{"name": "played_db"}
	if _, err := e.create(in); err != nil {
		t.Fatal(err)
	}
	mark := ask(t, "", "select shobj_description(oid, 'pg_database') from pg_database where datname = 'played_db'")[0]
	m := regexp.MustCompile(`owner=(\w+) stack=\S*@(\w+)`).FindStringSubmatch(mark)
	aside := "deployctl-" + m[1] + "-" + m[2]
	ask(t, "", `create database "`+aside+`" encoding 'LATIN1' locale 'C' template template0`)
	ask(t, "", `update pg_database set datconnlimit = -2 where datname = 'played_db'`) // its DROP was interrupted
	if _, err := e.create(in); err != nil {
		t.Fatal(err)
	}
	left := ask(t, "", `select datname, datconnlimit, pg_encoding_to_char(encoding) from pg_database
		where datname like 'played%' or datname like 'deployctl-%'`)
	if len(left) != 1 || left[0] != "played_db -1 UTF8" {
		t.Errorf("the server has %q", left)
	}
	ask(t, "", `create database "`+aside+`"`)
	if err := e.delete("played_db", in); err != nil {
		t.Error(err)
	}
	if left := ask(t, "", `select datname from pg_database where datname like 'deployctl-%'`); len(left) > 0 {
		t.Errorf("a delete leaves %q", left)
	}
}

func TestAGrantThatTheServerPassesOverFails(t *testing.T) {
	empty(t, within, "played_reader")
	ask(t, "", "create role played_nobody login password 'of nobody'")
	in := providertest.Inputs{"role": "played_reader", "on": "table", "database": within, "schema": "pg_catalog",
		"object": "pg_class", "privileges": []any{"INSERT"}}
	e := engineFor(t, aGrant, over(settings(t), providertest.Inputs{"postgresUser": "played_nobody",
		"postgresPassword": providertest.Secret("of nobody")}))
	if _, err := e.create(in); err == nil || !strings.Contains(err.Error(), "played_reader") {
		t.Errorf("it ends with %v", err)
	}
	for _, c := range []struct {
		others providertest.Inputs
		id     string
	}{
		{providertest.Inputs{"on": "database", "schema": nil, "object": nil, "privileges": []any{"TEMPORARY", "CONNECT"}},
			"public/database/played_in"},
		{providertest.Inputs{"on": "schema", "schema": "apart", "object": nil, "privileges": []any{"USAGE"}},
			"public/schema/played_in/apart"},
	} {
		e := engineFor(t, aGrant, settings(t))
		in := over(over(in, providertest.Inputs{"role": "public"}), c.others)
		made, err := e.create(in)
		if err != nil || made.GetId() != c.id {
			t.Fatalf("%s: %v, %v", c.id, made.GetId(), err)
		}
		if err := e.delete(c.id, in); err != nil {
			t.Error(err)
		}
		if ownership, _ := e.read(c.id, in); ownership != provider.Absent {
			t.Errorf("%s was revoked, and is %s", c.id, ownership)
		}
	}
}

func TestAnExtensionGoesToAnotherVersionIfThereIsAPath(t *testing.T) {
	withHstore(t)
	empty(t, within)
	e := engineFor(t, anExtension, settings(t))
	old := providertest.Inputs{"name": "hstore", "database": within, "version": "1.7"}
	next := over(old, providertest.Inputs{"version": "1.8"})
	if _, err := e.create(old); err != nil {
		t.Fatal(err)
	}
	if err := e.update("played_in/hstore", old, next); err != nil {
		t.Error(err)
	}
	if _, found := e.read("played_in/hstore", old); found["version"].StringValue() != "1.8" {
		t.Errorf("the version is %v", found["version"])
	}
	if err := e.update("played_in/hstore", next, old); err == nil || !strings.Contains(err.Error(), "no update path") {
		t.Errorf("back to a version without a path: %v", err)
	}
}

func TestListsTellWhatBearsTheMarkOfTheStack(t *testing.T) {
	empty(t, within)
	for token, c := range map[string]struct {
		in providertest.Inputs
		id string
	}{
		aRole:     {providertest.Inputs{"name": "played_role"}, "played_role"},
		aSchema:   {providertest.Inputs{"name": "played/schema", "database": within}, "played_in/played%2Fschema"},
		aDatabase: {providertest.Inputs{"name": "played_db"}, "played_db"},
	} {
		e := engineFor(t, token, settings(t))
		if made, err := e.create(c.in); err != nil || made.GetId() != c.id {
			t.Fatalf("%v, %v", made, err)
		}
		if found := e.list(); len(found) != 1 || found[0] != c.id {
			t.Errorf("of %s the list has %q", token, found)
		}
	}
}

func TestWrongInputsAreSaidWithTheProperty(t *testing.T) {
	long := strings.Repeat("x", 64)
	table := providertest.Inputs{"role": "r", "on": "table", "schema": "s", "object": "o", "privileges": []any{"SELECT"}}
	for _, c := range []struct {
		token string
		in    providertest.Inputs
		says  string
	}{
		{aDatabase, providertest.Inputs{"name": long}, "name must be at most 63 bytes"},
		{aDatabase, providertest.Inputs{"connectionLimit": -2}, "connectionLimit must be at least"},
		{aRole, providertest.Inputs{"name": "public"}, "name may not be public"},
		{aRole, providertest.Inputs{"password": "pässword"}, "password must be of printable ASCII"},
		{aSchema, providertest.Inputs{"owner": long}, "owner must be at most"},
		{anExtension, providertest.Inputs{"name": ""}, "name may not be empty"},
		{aGrant, over(table, providertest.Inputs{"on": "view"}), `on must be one of database, schema, sequence, table, not "view"`},
		{aGrant, over(table, providertest.Inputs{"on": "schema"}), "object may not be given for a schema"},
		{aGrant, over(table, providertest.Inputs{"object": nil}), "object must be given for a table"},
		{aGrant, over(table, providertest.Inputs{"privileges": []any{}}), "privileges may not be empty"},
		{aGrant, over(table, providertest.Inputs{"privileges": []any{"SELECT; DROP"}}), "privileges of a table are SELECT,"},
	} {
		e := engineFor(t, c.token, providertest.Inputs{"postgresHost": "127.0.0.1"})
		if _, wrong := e.check(c.in); !strings.Contains(wrong, c.says) {
			t.Errorf("of %v it says %q, not %q", c.in, wrong, c.says)
		}
	}
}

// TestTheExampleOfPostgreSQLRuns makes what the program of docs/postgres.md declares, in its order.
func TestTheExampleOfPostgreSQLRuns(t *testing.T) {
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	var program struct {
		Resources yaml.Node `yaml:"resources"`
	}
	if err := yaml.Unmarshal([]byte(text), &program); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"${password}": firstPassword}
	reference := regexp.MustCompile(`\$\{(\w+)\.(name|database)\}`)
	const prefix = "played_"
	config := settings(t)
	empty(t)
	for i := 0; i < len(program.Resources.Content); i += 2 {
		var r struct {
			Type       string
			Properties map[string]any
		}
		if err := program.Resources.Content[i+1].Decode(&r); err != nil {
			t.Fatal(err)
		}
		for property, v := range r.Properties {
			if s, ok := v.(string); ok && names[s] != "" {
				r.Properties[property] = names[s]
			} else if ok && reference.MatchString(s) {
				t.Fatalf("%s is used before it is declared", s)
			}
		}
		logical := program.Resources.Content[i].Value
		name, _ := r.Properties["name"].(string)
		if r.Type != anExtension && name != "" {
			name = prefix + name
			r.Properties["name"] = name
		}
		names["${"+logical+".name}"] = name
		names["${"+logical+".database}"], _ = r.Properties["database"].(string)
		if _, err := engineFor(t, r.Type, config).create(r.Properties); err != nil {
			t.Fatalf("%s: %v", logical, err)
		}
	}
	if _, err := try(t, prefix+"shop_app", firstPassword, prefix+"shop", "select 1"); err != nil {
		t.Error(err)
	}
	ask(t, prefix+"shop", `drop schema played_sales cascade`) // a role that has rights in a database cannot be dropped
	empty(t)
}
