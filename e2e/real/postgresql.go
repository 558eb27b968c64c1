package real

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"
)

// PostgreSQL is a proxy before a server that speaks PostgreSQL's protocol, without TLS. Statements of a transaction
// have their effect with its end.
type PostgreSQL struct {
	Address string // of the proxy

	listener net.Listener
	target   string
	faults   *Faults
}

// NewPostgreSQL starts a proxy on a loopback port.
func NewPostgreSQL(target string, faults *Faults) (*PostgreSQL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &PostgreSQL{l.Addr().String(), l, target, faults}
	go p.serve()
	return p, nil
}

// Close takes no more connections.
func (p *PostgreSQL) Close() { _ = p.listener.Close() }

func (p *PostgreSQL) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = client.Close() }()
			server, err := net.Dial("tcp", p.target)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			s := &session{faults: p.faults, client: client, server: server}
			go s.requests()
			s.answers()
		}()
	}
}

// session is a connection.
type session struct {
	faults         *Faults
	client, server net.Conn

	mu          sync.Mutex
	transaction bool
	changes     string // the statements of the transaction that change something
	pending     Kind   // what goes wrong with the answer that comes next
}

// Types of messages of PostgreSQL's protocol.
const (
	query, parse                        = 'Q', 'P'
	commandComplete, errorResponse byte = 'C', 'E'
)

// longestMessage bounds a message.
const longestMessage = 1 << 24

var errTooLong = errors.New("a message is too long")

// read reads a message: its type, 0 for the first one of a connection, and its content.
func read(from io.Reader, first bool) (kind byte, content []byte, err error) {
	var head [5]byte
	at := head[:]
	if first {
		at = head[1:]
	}
	if _, err := io.ReadFull(from, at); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n < 4 || n > longestMessage {
		return 0, nil, errTooLong
	}
	content = make([]byte, n-4)
	_, err = io.ReadFull(from, content)
	return head[0], content, err
}

// write writes a message.
func write(to io.Writer, kind byte, content []byte) error {
	var message []byte
	if kind != 0 {
		message = append(message, kind)
	}
	message = binary.BigEndian.AppendUint32(message, uint32(len(content)+4)) //nolint:gosec // it is bounded
	_, err := to.Write(append(message, content...))
	return err
}

// requests passes on what the client sends.
func (s *session) requests() {
	defer func() { _ = errors.Join(s.client.Close(), s.server.Close()) }()
	for first := true; ; first = false {
		kind, content, err := read(s.client, first)
		if err != nil {
			return
		}
		if kind == query || kind == parse {
			sql := strings.Trim(string(content), "\x00") // a prepared statement begins with its name, which is empty
			if s.sees(sql) == Refused {
				return
			}
		}
		if write(s.server, kind, content) != nil {
			return
		}
	}
}

// changing begins statements that change something.
var changing = regexp.MustCompile(`(?i)^\s*(CREATE|ALTER|DROP|GRANT|REVOKE|COMMENT|INSERT|UPDATE|DELETE|REASSIGN)\b`)

// sees says what goes wrong with a statement, or with its answer.
func (s *session) sees(sql string) Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := ""
	switch verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(sql)), " "); {
	case strings.HasPrefix(verb, "BEGIN"), verb == "START":
		s.transaction, s.changes = true, ""
	case strings.HasPrefix(verb, "ROLLBACK"):
		s.transaction = false
	case strings.HasPrefix(verb, "COMMIT"):
		s.transaction, call = false, s.changes
	case !changing.MatchString(sql):
	case s.transaction:
		s.changes += sql + ";"
	default:
		call = sql
	}
	s.pending = Fine
	if call != "" {
		s.pending = s.faults.Of(call)
	}
	return s.pending
}

// answers passes on what the server sends.
func (s *session) answers() {
	for {
		kind, content, err := read(s.server, false)
		if err != nil {
			return
		}
		s.mu.Lock()
		fault := s.pending
		if kind == commandComplete || kind == errorResponse {
			s.pending = Fine
		}
		s.mu.Unlock()
		if kind == commandComplete {
			switch fault {
			case PluginKilled, ServiceKilled:
				s.faults.Kill(fault)
				return
			case Cut:
				return
			case Error:
				kind = errorResponse
				content = []byte("SERROR\x00VERROR\x00CXX000\x00Mcould not write to a log file: internal error\x00\x00")
			case Late:
				time.Sleep(late)
			}
		}
		if write(s.client, kind, content) != nil {
			return
		}
	}
}
