package natsd

import (
	"fmt"
	"net"
	"strconv"
)

// Peer is the process at the other end of a Unix socket, as the kernel named it
// when it connected. Start is when it began, in a unit of the system's own that
// only serves to tell two processes with the same PID apart; 0 when unknown.
type Peer struct {
	UID, PID int
	Start    uint64
}

// String is the principal behind a connection: "uid:1000".
func (p Peer) String() string { return "uid:" + strconv.Itoa(p.UID) }

// PeerOf asks the kernel who is at the other end of a Unix socket.
func PeerOf(c net.Conn) (Peer, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return Peer{}, fmt.Errorf("who is the peer: %T is not a Unix socket", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("who is the peer: %w", err)
	}
	var p Peer
	var failed error
	if err := raw.Control(func(fd uintptr) { p, failed = credentials(int(fd)) }); err != nil {
		return Peer{}, fmt.Errorf("who is the peer: %w", err)
	}
	if failed != nil {
		return Peer{}, fmt.Errorf("who is the peer: %w", failed)
	}
	p.Start = started(p.PID)
	return p, nil
}
