package real

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/postgrestest"
)

// database is a PostgreSQL server.
type database struct{ address string }

// onPostgreSQL is Terraform's provider for PostgreSQL, as a package that is made at run time, and a server.
func onPostgreSQL(t *testing.T) *subject {
	provider := terraformProvider(t, "postgresql")
	dir, files := bridged(t, "postgresql", provider, "postgresql_role", "postgresql_database", "postgresql_schema")
	return &subject{
		server: &database{postgres(t)}, env: []string{"PATH=" + dir + string(os.PathListSeparator) + harnessPath(t)},
		files: files, plugin: "pulumi-resource-terraform-provider", program: postgresqlProgram,
	}
}

// harnessPath is the PATH of commands of a home.
func harnessPath(t *testing.T) string {
	t.Helper()
	peers, err := harness.Peers()
	harness.Must(t, err)
	return strings.Join(append(peers, os.Getenv("PATH")), string(os.PathListSeparator))
}

// postgres is the address of the server that was given, whose user postgres needs no password, or of one of the test's
// own.
func postgres(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("REAL_POSTGRESQL_ADDRESS"); given != "" {
		return given
	}
	server, err := postgrestest.Start()
	if errors.Is(err, postgrestest.ErrNone) {
		t.Skipf("%v, or set REAL_POSTGRESQL_ADDRESS", err)
	}
	harness.Must(t, err)
	t.Cleanup(server.Stop)
	return server.Address
}

func postgresqlProgram(s stage) string {
	host, port, _ := net.SplitHostPort(s.address) // it has a port
	limit, collation := 3, "C"
	if s.changed {
		limit = 4
	}
	if s.replaced {
		collation = "C.UTF-8" // POSIX would be read back as C
	}
	text := fmt.Sprintf(`name: real
runtime: yaml
resources:
  server:
    type: pulumi:providers:postgresql
    defaultProvider: true
    properties: {host: %[1]s, port: %[2]s, username: postgres, password: none, sslmode: disable, connectTimeout: 15}
  outside: {type: "postgresql:role", properties: {name: %[3]s-outside, connectionLimit: 7}}
  base:
    type: postgresql:database
    properties: {name: %[3]s-base, connectionLimit: %[4]d, template: template0, encoding: UTF8, lcCollate: C}
`, host, port, s.prefix, limit)
	for i := range 3 {
		text += fmt.Sprintf(`
  role%[2]d: {type: "postgresql:role", properties: {name: %[1]s-role%[2]d, login: true, connectionLimit: %[3]d}}
  schema%[2]d:
    type: postgresql:schema
    properties: {name: %[1]s-schema%[2]d, database: "${base.name}", owner: "${role%[2]d.name}"}
`, s.prefix, i, limit)
	}
	return text + fmt.Sprintf(`
  other:
    type: postgresql:database
    properties: {name: %[1]s-other, template: template0, encoding: UTF8, lcCollate: %[2]s, owner: "${role0.name}"}
    options: {deleteBeforeReplace: true}
`, s.prefix, collation)
}

func (d *database) proxy(t *testing.T, faults *Faults) string {
	p, err := NewPostgreSQL(d.address, faults)
	harness.Must(t, err)
	t.Cleanup(p.Close)
	return p.Address
}

// ask returns the rows of a query.
func (d *database) ask(ctx context.Context, sql string, more ...string) ([]string, error) {
	host, port, _ := net.SplitHostPort(d.address) // it has a port
	base := "postgres"
	if len(more) > 0 {
		base = more[0]
	}
	psql := exec.CommandContext(ctx, "psql", "-h", host, "-p", port, "-U", "postgres", "-d", base, "-Atqc", sql)
	out, err := psql.Output()
	return strings.Fields(string(out)), err
}

func (d *database) objects(ctx context.Context, prefix string) (all []object, err error) {
	for _, of := range []struct{ kind, sql string }{
		{"role", "select rolname from pg_roles"}, {"database", "select datname from pg_database"},
	} {
		names, err := d.ask(ctx, of.sql)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasPrefix(name, prefix+"-") {
				all = append(all, object{of.kind, name, name})
			}
			if name != prefix+"-base" {
				continue
			}
			schemas, err := d.ask(ctx, "select nspname from pg_namespace where nspname like 'seed%' or nspname like 'life%'",
				name)
			if err != nil {
				return nil, err
			}
			for _, schema := range schemas {
				all = append(all, object{"schema", schema, name + "." + schema})
			}
		}
	}
	return all, nil
}

func (d *database) alter(ctx context.Context, prefix string) error {
	_, err := d.ask(ctx, `alter role "`+prefix+`-outside" connection limit 9`)
	return err
}
