package devserver

import (
	"errors"
	"fmt"
	"os"

	"github.com/deployctl/deployctl/internal/devserver/parts"
)

// ensureDatabase makes the database of h if there is none. A database appears with its whole schema or not at all;
// schema.json beside it records which. The caller holds lockTemporal.
func ensureDatabase(h home, servers parts.Servers) error {
	var version parts.Schema
	recorded, err := readJSON(h.schema(), &version)
	switch {
	case err != nil:
		return err
	case !exists(h.database()):
		if err := writeJSON(h.schema(), servers.Schema()); err != nil { // first: no database without its version
			return err
		}
		if err := createDatabase(h, servers); err != nil {
			return fmt.Errorf("make Temporal's database: %w", err)
		}
	case !recorded || version != servers.Schema():
		return fmt.Errorf("the database %s has schema %v, this version of deployctl works with %v: use the version "+
			"that made it, or start over with `deployctl dev reset`", h.database(), version, servers.Schema())
	}
	return nil
}

// createDatabase builds the schema in a temporary file and renames it once it is on disk.
func createDatabase(h home, servers parts.Servers) error {
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
	if err := errors.Join(servers.CreateDatabase(temp), file.Sync()); err != nil {
		return err
	}
	return publish(temp, h.database())
}
