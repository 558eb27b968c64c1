package traffic

import (
	"net"
	"sync"
	"time"
)

// Away is a server that is far away: what is sent to it, and what it sends, is under way for half a round trip.
type Away struct {
	Address string

	listener net.Listener
	to       string
	half     time.Duration

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// NewAway moves the server at an address away. The caller closes it.
func NewAway(address string, roundTrip time.Duration) (*Away, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &Away{Address: listener.Addr().String(), listener: listener, to: address, half: roundTrip / 2,
		open: map[net.Conn]bool{}}
	go a.serve()
	return a, nil
}

func (a *Away) serve() {
	for {
		from, err := a.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", a.to)
		if err != nil || !a.keep(from, to) {
			_ = from.Close()
			continue
		}
		go a.carry(from, to)
		go a.carry(to, from)
	}
}

// keep notes connections, to close them; false: the server is closed.
func (a *Away) keep(connections ...net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range connections {
		a.open[c] = true
	}
	return !a.closed
}

// piece is what was read at once, and when it arrives.
type piece struct {
	data []byte
	at   time.Time
}

// carry carries bytes one way until one of the two ends.
func (a *Away) carry(from, to net.Conn) {
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				pieces <- piece{data[:n], time.Now().Add(a.half)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
	for range pieces { // the reader does not hang
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, from)
	delete(a.open, to)
}

// Close ends all connections.
func (a *Away) Close() {
	_ = a.listener.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for c := range a.open {
		_ = c.Close()
	}
}
