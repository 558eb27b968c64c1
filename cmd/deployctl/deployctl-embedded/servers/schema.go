package servers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

// clusterName is the only cluster of an embedded server; Temporal's tools call it this too.
const clusterName = "active"

// Schema implements parts.Servers.
func (All) Schema() parts.Schema {
	return parts.Schema{Executions: sqliteschema.Version, Visibility: sqliteschema.VisibilityVersion}
}

// databaseConfig describes the database to Temporal. One connection: SQLite has one writer, and a second connection
// turns waiting for it into errors. Temporal keeps it open, by its attributes, until the process ends; a server that is
// started once more must not get the one of a database that was removed, so each description is unlike all others.
func databaseConfig(file string) *config.SQL {
	return &config.SQL{
		PluginName:   sqlite.PluginName,
		DatabaseName: (&url.URL{Path: file}).EscapedPath(), // becomes part of a file: URI
		ConnectAttributes: map[string]string{
			"mode":         "rw", // never make an empty one
			"journal_mode": "WAL",
			"synchronous":  "FULL",
			"busy_timeout": "10000", // ms
			"cache_size":   "-32768",
			"setup":        "no, for start " + rand.Text(), // only "true" means something
		},
	}
}

// ensureNamespace makes the namespace: one insert, if it is not there.
func ensureNamespace(database *config.SQL, t parts.Temporal) error {
	namespace, err := sqliteschema.NewNamespaceConfig(clusterName, t.Namespace, false, t.SearchAttributes)
	if err != nil {
		return err
	}
	namespace.Detail.Config.Retention = durationpb.New(t.Retention)
	return sqliteschema.CreateNamespaces(database, namespace)
}

// CreateDatabase implements parts.Servers.
func (All) CreateDatabase(file string) error {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{
		Path: file}).EscapedPath()+"?mode=rw&_pragma=journal_mode=MEMORY&_pragma=synchronous=OFF")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(sqliteschema.SetupSchemaOnDB(schemaTarget{db: db}), db.Close())
}

// schemaTarget is the little that setting up a schema needs of an AdminDB. Temporal's own keeps its connection open for
// the life of the process, under the name of a file that is about to be renamed.
type schemaTarget struct {
	sqlplugin.AdminDB
	db *sql.DB
}

func (t schemaTarget) Exec(statement string, args ...any) error {
	_, err := t.db.ExecContext(context.Background(), statement, args...)
	return err
}
