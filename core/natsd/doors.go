package natsd

import (
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// doors decides who may be on the server. It knows three kinds of connections:
// the core's own to each account, and admitted ones, which hold a ticket.
type doors struct {
	coreSecret  string
	doorsSecret string

	core   *server.Account // set once by open, before the server accepts anybody
	people *server.Account

	mu        sync.Mutex
	live      map[string]*admission // by bare id
	tickets   map[string]*admission // not yet redeemed
	processes map[int]int           // connections of each peer process
}

// admission is one connection that the bridge let in.
type admission struct {
	role string // "fe" or "op"
	id   string // a ULID in lower case
	peer Peer
}

func newDoors() *doors {
	return &doors{
		coreSecret: secret(), doorsSecret: secret(),
		live: map[string]*admission{}, tickets: map[string]*admission{}, processes: map[int]int{},
	}
}

// open finds the server's accounts.
func (d *doors) open(ns *server.Server) (err error) {
	if d.core, err = ns.LookupAccount(coreAccount); err != nil {
		return fmt.Errorf("look up the core's account: %w", err)
	}
	if d.people, err = ns.LookupAccount(doorsAccount); err != nil {
		return fmt.Errorf("look up the doors' account: %w", err)
	}
	return nil
}

// Check is the server's question about a CONNECT. A ticket is good for one
// CONNECT, so a second one on the same connection ends it.
func (d *doors) Check(c server.ClientAuthentication) bool {
	u := d.user(c.GetOpts().Token)
	if u == nil {
		return false
	}
	c.RegisterUser(u)
	return true
}

func (d *doors) user(token string) *server.User {
	switch token {
	case "":
		return nil
	case d.coreSecret:
		return &server.User{Username: "core", Account: d.core}
	case d.doorsSecret:
		return &server.User{Username: "core-doors", Account: d.people}
	}
	d.mu.Lock()
	a := d.tickets[token]
	delete(d.tickets, token)
	d.mu.Unlock()
	if a == nil {
		return nil
	}
	return &server.User{Username: a.role + "." + a.id, Account: d.people, Permissions: a.permissions()}
}

// permissions pins a connection to its own id. The scope of a frontend is
// everything: all users of one core are the same person.
func (a *admission) permissions() *server.Permissions {
	inbox := "_IB." + a.id + ".>"
	hear := []string{inbox}
	if a.role == "fe" {
		hear = append(hear, "fermata.v1.*.*.live", "fermata.lobby.v1.announce")
	}
	own := "." + a.role + "." + a.id + ".>"
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"fermata.v1.*.*" + own, "fermata.lobby.v1.*" + own}},
		Subscribe: &server.SubjectPermission{Allow: hear},
	}
}

// arrive counts a connection of a process.
func (d *doors) arrive(p Peer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.processes[p.PID] >= maxPerProcess {
		return refused(fmt.Sprintf("Process Has %d Connections Already", maxPerProcess))
	}
	d.processes[p.PID]++
	return nil
}

func (d *doors) leave(p Peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.processes[p.PID]--; d.processes[p.PID] <= 0 {
		delete(d.processes, p.PID)
	}
}

// admit makes an id live and gives the ticket for it. One id is one connection,
// whatever its role: both roles of an id would share an inbox.
func (d *doors) admit(role, id string, p Peer) (a *admission, ticket string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[id] != nil {
		return nil, "", refused("Connection Id In Use")
	}
	a, ticket = &admission{role: role, id: id, peer: p}, secret()
	d.live[id], d.tickets[ticket] = a, a
	return a, ticket, nil
}

func (d *doors) dismiss(a *admission, ticket string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.live, a.id)
	delete(d.tickets, ticket)
}

// Principal tells who is behind the live connection with an id. The id may be
// bare, or with its role ("fe.<id>", "op.<id>"), which must then be that one.
func (s *Server) Principal(id string) (Peer, bool) {
	role, bare, named := strings.Cut(id, ".")
	if !named {
		bare = id
	}
	s.doors.mu.Lock()
	defer s.doors.mu.Unlock()
	a := s.doors.live[bare]
	if a == nil || named && a.role != role {
		return Peer{}, false
	}
	return a.peer, true
}
