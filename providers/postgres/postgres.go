// Package postgres provides databases, roles, schemas, extensions and grants of a PostgreSQL server, as convergent
// resources.
//
// What it makes carries a stamp in its comment, beside the user's own text, that says which resource of which stack it
// is: see package stamp. A create sets it in the same transaction; a database, which no transaction can create, is made
// under another name and renamed with its stamp. A grant has no comment: it is nothing but its role, object and
// privileges, so what is there is what is declared, and granting it twice is nothing.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/provider"
	"github.com/jackc/pgx/v5"
)

// Config says where the server is and who calls. If nothing of it is set, the environment and the files decide that
// libpq reads (PGHOST, PGUSER, PGPASSWORD, PGPASSFILE, …). If anything is, they count for TLS alone, so that a
// password that is meant for one server never reaches another.
type Config struct {
	Host     string `pulumi:"postgresHost,optional" doc:"The host, or the directory of a Unix socket. If no postgres setting is made: PGHOST and the other variables of libpq."`
	Port     int    `pulumi:"postgresPort,optional" doc:"The port; without it 5432."`
	User     string `pulumi:"postgresUser,optional" doc:"The role that connects; without it postgres."`
	Password string `pulumi:"postgresPassword,optional,secret" doc:"Its password."`
	Database string `pulumi:"postgresDatabase,optional" doc:"The database to connect to, also for what is in a database and names none; without it postgres."`
	SSLMode  string `pulumi:"postgresSslMode,optional" doc:"disable, allow, prefer (the default), require, verify-ca or verify-full, as libpq has them; PGSSLROOTCERT names a file with certificates."`
}

// Module is the postgres module.
func Module() provider.Module { return module(func(_ string, do func() error) error { return do() }) }

// module has each call to the server pass through a function, which tests disturb.
func module(through through) provider.Module {
	conn := &connection{through: through, slots: make(chan struct{}, mostSessions)}
	return provider.Module{
		Config: provider.Configured(conn.open),
		Resources: []provider.Resource{
			provider.NewResource("deployctl:postgres:Database", &Database{conn}),
			provider.NewResource("deployctl:postgres:Role", &Role{conn}),
			provider.NewResource("deployctl:postgres:Schema", &Schema{conn}),
			provider.NewResource("deployctl:postgres:Extension", &Extension{conn}),
			provider.NewResource("deployctl:postgres:Grant", &Grant{conn}),
		},
	}
}

type through func(what string, do func() error) error

// connection is what the last Configure has set. A session lasts for one operation: one that stayed open would keep its
// database from being dropped.
type connection struct {
	through through
	slots   chan struct{}

	mu       sync.Mutex
	config   *pgx.ConnConfig
	redactor *redaction.Redactor
}

const (
	mostSessions   = 10 // of the hundred that a server has by default
	connectTimeout = 30 * time.Second
	defaultPort    = 5432
	defaultName    = "postgres" // of the user and the database
)

var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

func (c *connection) open(_ context.Context, cfg Config) error {
	config, err := cfg.parse()
	if err != nil {
		return err
	}
	config.ConnectTimeout = connectTimeout
	config.RuntimeParams["application_name"] = "deployctl"
	config.RuntimeParams["standard_conforming_strings"] = "on" // literal depends on it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config, c.redactor = config, redaction.New([]string{config.Password})
	return nil
}

func (cfg Config) parse() (*pgx.ConnConfig, error) {
	if cfg == (Config{}) {
		config, err := pgx.ParseConfig("")
		if err != nil {
			return nil, fmt.Errorf("the environment of PostgreSQL: %w", err)
		}
		config.Database = cmp.Or(config.Database, config.User) // as libpq has it
		return config, nil
	}
	switch {
	case cfg.Host == "":
		return nil, errors.New("postgresHost must be given with the other postgres settings: without any, PGHOST and the " +
			"other variables count")
	case cfg.SSLMode != "" && !slices.Contains(sslModes, cfg.SSLMode):
		return nil, fmt.Errorf("postgresSslMode must be one of %s, not %q", strings.Join(sslModes, ", "), cfg.SSLMode)
	case cfg.Port < 0 || cfg.Port > 65535:
		return nil, errors.New("postgresPort must be 1 to 65535")
	}
	var text []string
	for _, setting := range [][2]string{
		{"host", cfg.Host}, {"port", strconv.Itoa(cmp.Or(cfg.Port, defaultPort))}, {"user", cmp.Or(cfg.User, defaultName)},
		{"database", cmp.Or(cfg.Database, defaultName)}, {"sslmode", cmp.Or(cfg.SSLMode, "prefer")},
		{"passfile", ""}, {"options", ""},
	} {
		text = append(text, setting[0]+"='"+quotable.ReplaceAllString(setting[1], `\$0`)+"'")
	}
	config, err := pgx.ParseConfig(strings.Join(text, " "))
	if err != nil {
		return nil, fmt.Errorf("the postgres settings: %w", err)
	}
	config.Password = cfg.Password // and not that of the environment
	return config, nil
}

var quotable = regexp.MustCompile(`['\\]`)

// get returns the settings, and the database that resources are in which name none.
func (c *connection) get() (*pgx.ConnConfig, *redaction.Redactor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config == nil {
		return nil, nil, errors.New("the provider is not configured yet")
	}
	return c.config.Copy(), c.redactor, nil
}

// session is a connection to one database, for one operation.
type session struct {
	conn     *pgx.Conn
	through  through
	user     string
	database string
	end      func()
}

// dial connects to a database, without a name to the configured one.
func (c *connection) dial(ctx context.Context, database string) (*session, error) {
	config, redactor, err := c.get()
	if err != nil {
		return nil, err
	}
	config.Database = cmp.Or(database, config.Database)
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s := &session{through: c.through, user: config.User, database: config.Database}
	err = c.through("connect to "+config.Database, func() (err error) {
		s.conn, err = pgx.ConnectConfig(ctx, config)
		return err
	})
	s.end = sync.OnceFunc(func() {
		if s.conn != nil {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = s.conn.Close(closing)
		}
		<-c.slots
	})
	if err != nil {
		s.end()
		address := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
		return nil, connecting(ctx, fmt.Sprintf("%s as %s to database %s", address, config.User, config.Database),
			redactor.Replace, err)
	}
	return s, nil
}

// rows returns what a query finds. T is a struct of its columns.
func rows[T any](ctx context.Context, s *session, sql string, args ...any) (found []*T, err error) {
	err = s.through(sql, func() error {
		result, err := s.conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(result, pgx.RowToAddrOfStructByPos[T])
		return err
	})
	return found, err
}

// row returns the one that a query finds, nil if there is none.
func row[T any](ctx context.Context, s *session, sql string, args ...any) (*T, error) {
	found, err := rows[T](ctx, s, sql, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// apply sends statements in one message: they have their effect together, or none has.
func (s *session) apply(ctx context.Context, statements ...string) error {
	if len(statements) == 0 {
		return nil
	}
	sql := strings.Join(statements, "; ")
	return s.through(sql, func() error { return s.conn.PgConn().Exec(ctx, sql).Close() })
}

// name quotes an identifier.
func name(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// literal quotes a text where a statement takes no parameter. The server has no text with a zero byte.
func literal(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "'", "''") + "'"
}
