package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/provider"
	"github.com/jackc/pgx/v5/pgconn"
)

// class says what an answer of the server means for what was asked for: see the errors of package provider.
type class int

const (
	refused class = iota // it did not happen, and waiting does not help
	notDone              // it did not happen, and waiting may help
	unknown              // it may have happened
)

// answers are the classes of SQLSTATEs, by what they begin with; the longest beginning counts, and what has none is
// refused.
var answers = map[string]class{
	"08":    unknown, // the connection was lost
	"08001": notDone, // it could not be made
	"08004": notDone, // it was rejected
	"25006": notDone, // the server is read-only, as one that is not yet promoted
	"40":    notDone, // rolled back: a deadlock, a serialization failure
	"40003": unknown,
	"53":    notDone, // too many connections, no memory, no space
	"55006": notDone, // the object is in use
	"55P03": notDone, // it is locked
	"57":    notDone, // canceled, shutting down, starting
	"57P02": unknown, // another process of the server crashed
	"58":    unknown, // an error of the system below the server
	"XX":    unknown, // an internal error
}

// remedies say what a person can do about a SQLSTATE.
var remedies = map[string]string{
	"28":    "check postgresUser, postgresPassword and the server's pg_hba.conf",
	"42501": "the role that connects lacks the right: grant it, or set another postgresUser",
	"53300": "the server has no connection left",
}

// busy are messages of internal errors that say that another transaction was first, and nothing was done.
var busy = []string{"tuple concurrently updated", "tuple concurrently deleted"}

func classOf(answer *pgconn.PgError) class {
	if strings.HasPrefix(answer.Code, "XX") && slices.Contains(busy, answer.Message) {
		return notDone
	}
	return longest(answers, answer.Code)
}

// longest is the entry of the longest beginning of a code.
func longest[T any](table map[string]T, code string) (entry T) {
	for n := len(code); n > 0; n-- {
		if entry, ok := table[code[:n]]; ok {
			return entry
		}
	}
	return entry
}

// failed says which thing an error is of, and what it means.
func failed(what string, err error, hints ...string) error {
	var (
		foreign *provider.Foreign
		answer  *pgconn.PgError
	)
	switch {
	case err == nil, errors.As(err, &foreign), isClassified(err):
		return err
	case errors.As(err, &answer):
		return classified(classOf(answer), fmt.Errorf("%s: %w", explained(what, answer, hints), err))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errPlain):
		return fmt.Errorf("%s: %w", what, err)
	case pgconn.SafeToRetry(err):
		return &provider.NotDone{Err: fmt.Errorf("%s: %w", what, err)}
	}
	return &provider.Unknown{Err: fmt.Errorf("%s: the connection was lost: %w", what, err)}
}

// explained is what goes before the server's message: the details, and what to do.
func explained(what string, answer *pgconn.PgError, hints []string) string {
	parts := []string{what}
	for _, more := range append([]string{answer.Detail, answer.Hint, longest(remedies, answer.Code)}, hints...) {
		if more != "" {
			parts = append(parts, strings.TrimRight(more, "."))
		}
	}
	if len(parts) == 1 {
		return what
	}
	return what + " (" + strings.ReplaceAll(strings.Join(parts[1:], "; "), "\n", ", ") + ")"
}

// errPlain is an error that this package makes: nothing was done, and waiting does not help.
var errPlain = errors.New("it cannot be done")

func plainf(format string, args ...any) error {
	return &plainError{fmt.Sprintf(format, args...)}
}

type plainError struct{ text string }

func (e *plainError) Error() string        { return e.text }
func (e *plainError) Is(target error) bool { return target == errPlain }

// connecting is the error of a connection that was not made, which does nothing.
func connecting(ctx context.Context, to string, redact func(string) string, err error) error {
	var (
		answer      *pgconn.PgError
		certificate *tls.CertificateVerificationError
	)
	what := "connecting to " + to
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &answer) && classOf(answer) == refused:
		return failed(what, answer)
	case errors.As(err, &certificate):
		return fmt.Errorf("%s: %w", what, certificate)
	}
	return &provider.NotDone{Err: fmt.Errorf("%s: %s", what, redact(err.Error()))}
}

func classified(as class, err error) error {
	switch as {
	case notDone:
		return &provider.NotDone{Err: err}
	case unknown:
		return &provider.Unknown{Err: err}
	}
	return err
}

func isClassified(err error) bool {
	var (
		notDone *provider.NotDone
		unknown *provider.Unknown
	)
	return errors.As(err, &notDone) || errors.As(err, &unknown)
}

// is says whether the server answered with one of the codes.
func is(err error, codes ...string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && slices.Contains(codes, answer.Code)
}

// SQLSTATEs that say that something exists, does not exist, or is needed.
var existing, missing = []string{"42P04", "42P06", "42710", "23505"}, []string{"3D000", "3F000", "42704"}

const (
	noDatabase = "3D000"
	needed     = "2BP01"
)

// settled repeats what met somebody else at the same thing, who has made or removed it since it was looked at.
func settled(attempt func() error) error {
	const attempts = 3
	var err error
	for range attempts {
		if err = attempt(); !is(err, existing...) && !is(err, missing...) {
			return err
		}
	}
	return err
}
