package devserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Namespace is the Temporal namespace of the embedded service.
const Namespace = "deployctl"

// retention is how long closed workflows stay readable.
const retention = 30 * 24 * time.Hour

// clusterName is the only cluster of an embedded server; Temporal's tools call it this too.
const clusterName = "active"

// schemaVersion is what schema.json records beside the database. SQLite databases of Temporal carry no version of their
// own.
type schemaVersion struct {
	Executions string `json:"executions"`
	Visibility string `json:"visibility"`
}

// currentSchema is the schema that this binary's Temporal server expects.
var currentSchema = schemaVersion{Executions: sqliteschema.Version, Visibility: sqliteschema.VisibilityVersion}

// databaseConfig describes the database to Temporal. One connection: SQLite has one writer, and a second connection
// turns waiting for it into errors. Temporal keeps it open, by its attributes, until the process ends; a server that is
// started once more must not get the one of a database that Reset has removed, so each description is unlike all
// others.
func databaseConfig(h home) *config.SQL {
	return &config.SQL{
		PluginName:   sqlite.PluginName,
		DatabaseName: (&url.URL{Path: h.database()}).EscapedPath(), // becomes part of a file: URI
		ConnectAttributes: map[string]string{
			"mode":         "rw", // never make an empty one: see ensureDatabase
			"journal_mode": "WAL",
			"synchronous":  "FULL",
			"busy_timeout": "10000", // ms
			"cache_size":   "-32768",
			"setup":        "no, for start " + token(5), // only "true" means something
		},
	}
}

// ensureDatabase makes the database of h if there is none, and the namespace in it. A database appears with its whole
// schema or not at all. The caller holds lockTemporal.
func ensureDatabase(h home, database *config.SQL) error {
	var version schemaVersion
	recorded, err := readJSON(h.schema(), &version)
	if err != nil {
		return err
	}
	switch {
	case !exists(h.database()):
		if err := writeJSON(h.schema(), currentSchema); err != nil { // first: no database without its version
			return err
		}
		if err := createDatabase(h); err != nil {
			return fmt.Errorf("make Temporal's database: %w", err)
		}
	case !recorded || version != currentSchema:
		return fmt.Errorf("the database %s has schema %v, this version of deployctl works with %v: use the version "+
			"that made it, or start over with `deployctl dev reset`", h.database(), version, currentSchema)
	}
	namespace, err := sqliteschema.NewNamespaceConfig(clusterName, Namespace, false, SearchAttributes())
	if err != nil {
		return err
	}
	namespace.Detail.Config.Retention = durationpb.New(retention)
	return sqliteschema.CreateNamespaces(database, namespace) // one insert, if it is not there
}

// createDatabase builds the schema in a temporary file and renames it once it is on disk.
func createDatabase(h home) error {
	temp := h.database() + ".new"
	for _, left := range []string{temp, temp + "-journal", h.database() + "-wal", h.database() + "-shm"} {
		if err := os.Remove(left); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) // SQLite gives its other files the same mode
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{
		Path: temp}).EscapedPath()+"?mode=rw&_pragma=journal_mode=MEMORY&_pragma=synchronous=OFF")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	err = sqliteschema.SetupSchemaOnDB(schemaTarget{db: db})
	if err := errors.Join(err, db.Close(), file.Sync()); err != nil {
		return err
	}
	return publish(temp, h.database())
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
