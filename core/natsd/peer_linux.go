package natsd

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func credentials(fd int) (Peer, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	return Peer{UID: int(c.Uid), PID: int(c.Pid)}, nil
}

// started is the start time of a process in clock ticks since boot: field 22 of
// its stat line. The name in field 2 may hold anything, so counting begins
// behind its last parenthesis.
func started(pid int) uint64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0
	}
	n, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
