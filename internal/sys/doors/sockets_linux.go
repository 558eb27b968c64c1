package doors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// socket is the kernel's record of a TCP socket.
type socket struct {
	local, remote netip.AddrPort
	state         uint8
	uid           int
	inode         string // "0" if no process has it any more, or not yet
}

// States of a TCP socket, from the kernel's tcp_states.h. In stateTimeWait both ends of a connection were closed within
// the last minute.
const (
	stateEstablished, stateTimeWait, stateListening = 1, 6, 10
)

// Sets of states.
const (
	listening uint32 = 1 << stateListening
	others    uint32 = 0xffff &^ listening
	waiting   uint32 = 1 << stateTimeWait
)

// connection returns the socket of a connection by its two ends, which are not of IPv4 in IPv6.
func connection(local, remote netip.AddrPort) (socket, bool) {
	matches := func(s socket) bool { return s.local == local && s.remote == remote }
	family := uint8(unix.AF_INET)
	if local.Addr().Is6() {
		family = unix.AF_INET6
	}
	if !answers() {
		if found, err := read(matches); err == nil && len(found) > 0 {
			return found[0], true
		}
		return socket{}, false
	}
	found, err := diagnose(netlink.Request, family, others, local, remote)
	if i := slices.IndexFunc(found, matches); err == nil && i >= 0 {
		return found[i], true
	}
	return socket{}, false
}

// answers reports whether the kernel answers requests, as it has no answer about a socket that is gone: who connects
// and leaves must not choose that the tables in /proc are read. It is found out once, by a socket that is there.
var answers = sync.OnceValue(func() bool {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return true // then the requests fail, at worst
	}
	defer func() { _ = l.Close() }()
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return true
	}
	defer func() { _ = conn.Close() }()
	found, err := diagnose(netlink.Request, unix.AF_INET, others, end(conn.LocalAddr()), end(conn.RemoteAddr()))
	return err == nil && len(found) > 0
})

// sockets returns the sockets in some states that match.
func sockets(states uint32, matches func(socket) bool) (found []socket, err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} { // an IPv6 socket may have a connection over IPv4
		all, err := diagnose(netlink.Request|netlink.Dump, family, states, netip.AddrPort{}, netip.AddrPort{})
		if err != nil {
			return read(func(s socket) bool { return 1<<s.state&states != 0 && matches(s) })
		}
		for _, s := range all {
			if matches(s) {
				found = append(found, s)
			}
		}
	}
	return found, nil
}

// endpoints are the two ends of a socket in a request to the kernel and in its answer.
type endpoints struct {
	LocalPort, RemotePort [2]byte // in network byte order
	Local, Remote         [16]byte
	Interface             uint32
	Cookie                [2]uint32
}

// question is the kernel's struct inet_diag_req_v2, answer its struct inet_diag_msg.
type (
	question struct {
		Family, Protocol, Extensions, _ uint8
		States                          uint32
		Ends                            endpoints
	}
	answer struct {
		Family, State, Timer, Retransmits            uint8
		Ends                                         endpoints
		Expires, ReceiveQueue, SendQueue, UID, Inode uint32
	}
)

// diagnose asks the kernel for sockets: with the flag Dump for all in some states, else for the one with the given
// ends. A request for one socket takes microseconds, while /proc makes the kernel walk through its whole hash table.
func diagnose(flags netlink.HeaderFlags, family uint8, states uint32, local, remote netip.AddrPort) ([]socket, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	q := question{Family: family, Protocol: unix.IPPROTO_TCP, States: states}
	q.Ends.Cookie = [2]uint32{^uint32(0), ^uint32(0)} // any socket
	binary.BigEndian.PutUint16(q.Ends.LocalPort[:], local.Port())
	binary.BigEndian.PutUint16(q.Ends.RemotePort[:], remote.Port())
	copy(q.Ends.Local[:], local.Addr().AsSlice())
	copy(q.Ends.Remote[:], remote.Addr().AsSlice())
	var text bytes.Buffer
	if err := binary.Write(&text, binary.NativeEndian, q); err != nil {
		return nil, err
	}
	messages, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.SOCK_DIAG_BY_FAMILY, Flags: flags}, Data: text.Bytes(),
	})
	if err != nil {
		return nil, err
	}
	var found []socket
	for _, m := range messages {
		var a answer
		if err := binary.Read(bytes.NewReader(m.Data), binary.NativeEndian, &a); err != nil {
			return nil, err
		}
		found = append(found, a.socket())
	}
	return found, nil
}

func (a answer) socket() socket {
	return socket{
		local: a.end(a.Ends.Local, a.Ends.LocalPort), remote: a.end(a.Ends.Remote, a.Ends.RemotePort),
		state: a.State, uid: int(a.UID), inode: strconv.FormatUint(uint64(a.Inode), 10),
	}
}

func (a answer) end(address [16]byte, port [2]byte) netip.AddrPort {
	ip := netip.AddrFrom16(address).Unmap()
	if a.Family == unix.AF_INET {
		ip = netip.AddrFrom4([4]byte(address[:4]))
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(port[:]))
}

var tables = []string{"/proc/net/tcp", "/proc/net/tcp6"}

// read returns the matching sockets from the tables in /proc, for a kernel that does not support requests.
func read(matches func(socket) bool) (found []socket, err error) {
	for _, table := range tables {
		f, err := os.Open(table)
		if errors.Is(err, fs.ErrNotExist) {
			continue // without IPv6
		} else if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if s, ok := parse(lines.Text()); ok && matches(s) {
				found = append(found, s)
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// parse parses a line: sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode.
func parse(line string) (s socket, ok bool) {
	x := strings.Fields(line)
	if len(x) < 10 {
		return s, false
	}
	var err1, err2, err3 error
	s.local, err1 = address(x[1])
	s.remote, err2 = address(x[2])
	s.uid, err3 = strconv.Atoi(x[7])
	state, err4 := strconv.ParseUint(x[3], 16, 8)
	s.state, s.inode = uint8(state), x[9]
	return s, errors.Join(err1, err2, err3, err4) == nil
}

// address parses ADDRESS:PORT in hexadecimal. The address consists of 32-bit words in the machine's byte order.
func address(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for word := range slices.Chunk(raw, 4) {
		if len(word) == 4 {
			binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
		}
	}
	ip, ok := netip.AddrFromSlice(raw)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", text)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), nil
}
