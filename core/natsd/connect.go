package natsd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// maxConnect is how long a CONNECT may be, the server's own limit for a line.
const maxConnect = 4096

// refused is a reason that the client is told as -ERR. It must not begin with
// one of the phrases that make a NATS client give up for good ("Authorization
// Violation"), and holds no quote and no line end.
type refused string

// Error is the reason.
func (r refused) Error() string { return string(r) }

// connectArgs is what may pass from a client's CONNECT: how it wants to speak,
// and its name. Everything else, above all credentials, is dropped. A nil keeps
// the server's default.
type connectArgs struct {
	Verbose      *bool  `json:"verbose,omitempty"`
	Pedantic     *bool  `json:"pedantic,omitempty"`
	Echo         *bool  `json:"echo,omitempty"`
	Headers      *bool  `json:"headers,omitempty"`
	NoResponders *bool  `json:"no_responders,omitempty"`
	Protocol     *int   `json:"protocol,omitempty"`
	Name         string `json:"name"`
	Ticket       string `json:"auth_token"`
}

// readLine reads up to the first line end, which must come within limit bytes.
// rest is what had arrived behind it. An error is the reader's or a [refused].
func readLine(r io.Reader, limit int) (line, rest []byte, err error) {
	buf := make([]byte, limit)
	for n := 0; n < limit; {
		m, err := r.Read(buf[n:])
		if i := bytes.IndexByte(buf[n:n+m], '\n'); i >= 0 {
			end := n + i
			return bytes.TrimSuffix(buf[:end], []byte{'\r'}), buf[end+1 : n+m], nil
		}
		if n += m; err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, refused(fmt.Sprintf("Line Longer Than %d Bytes", limit))
}

// parseConnect takes apart the CONNECT line of a client and gives role and id
// that its name holds.
func parseConnect(line []byte) (args connectArgs, role, id string, err error) {
	const verb = "CONNECT"
	if len(line) <= len(verb) || !strings.EqualFold(string(line[:len(verb)]), verb) || !isBlank(line[len(verb)]) {
		return args, "", "", refused("CONNECT Expected First")
	}
	dec := json.NewDecoder(bytes.NewReader(line[len(verb):]))
	if err := dec.Decode(&args); err != nil {
		return args, "", "", refused("CONNECT Is Not A JSON Object")
	}
	if _, err := dec.Token(); err != io.EOF {
		return args, "", "", refused("CONNECT Is Not One JSON Object")
	}
	role, id, _ = strings.Cut(args.Name, ".")
	if (role != "fe" && role != "op") || !isULID(id) {
		return args, "", "", refused("CONNECT Name Must Be fe.ULID Or op.ULID In Lower Case")
	}
	args.Ticket = ""
	return args, role, id, nil
}

// encode writes the CONNECT line that the server gets.
func (a connectArgs) encode(ticket string) ([]byte, error) {
	a.Ticket = ticket
	b, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("write CONNECT: %w", err)
	}
	return append(append([]byte("CONNECT "), b...), "\r\n"...), nil
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

// isULID tells whether s is a ULID in lower case: 26 characters of 5 bits, the
// first at most 7.
func isULID(s string) bool {
	return len(s) == 26 && s[0] <= '7' && strings.Trim(s, "0123456789abcdefghjkmnpqrstvwxyz") == ""
}
