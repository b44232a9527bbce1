// Package natsd runs the NATS server that a core carries inside itself. It
// listens on no port: the core talks to it in process, everybody else through
// Unix sockets in the runtime directory.
//
//	s, err := natsd.Start(natsd.Options{StateDir: …, RuntimeDir: …, SyncAlways: true})
//	defer s.Close()
//	log, err := s.Core()    // the account with JetStream, the core's alone
//	doors, err := s.Doors() // the account where frontends and agents are
//	err = s.Run(ctx)        // nats.sock: admits frontends and agents to the doors
//
// A frontend's or agent's connection proves nothing by what it sends. The bridge
// behind nats.sock asks the kernel who is at the other end, replaces whatever
// credentials the CONNECT carries by a ticket of its own, and the server pins
// the connection to the subjects of the one id that it named.
package natsd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Limits that keep one bad client from hurting the others.
const (
	maxPayload     = 16 << 20         // bytes of one message
	maxPending     = 32 << 20         // bytes the server holds for a slow reader before it closes it
	maxConnections = 16384            // all of them
	maxPerProcess  = 4096             // of one process
	maxSubs        = 1 << 16          // of one connection; the core has a few for each session
	writeDeadline  = 10 * time.Second // of one write to a reader that does not read
	maxMemory      = 2 << 30          // bytes of all memory streams
)

// The accounts. The log is in the core's; the doors' has no JetStream at all.
const (
	coreAccount  = "CORE"
	doorsAccount = "DOORS"
	sysAccount   = "SYS"
)

// Options says where a server keeps its things.
type Options struct {
	StateDir   string       // the log and a lock; made 0700 when missing
	RuntimeDir string       // sockets and a lock; made 0700 when missing
	SyncAlways bool         // fsync before each ack (mode power); false survives kill -9 only
	MaxStore   int64        // bytes that the log may use at most; 0 = three quarters of the free disk
	Memory     bool         // tests: no directories, no locks, no sockets; what is stored is gone at Close
	Log        *slog.Logger // nil = silent
}

// Server is a running server. It holds locks, sockets and a store until Close.
type Server struct {
	opts  Options
	log   *slog.Logger
	nats  *server.Server
	doors *doors
	locks []*os.File
	temp  string // removed at Close, "" when the state is to stay

	mu        sync.Mutex
	listeners []net.Listener
	closed    bool
}

// Start locks both directories and starts the server on what they hold. When
// another process has one of them the error is an [*InUse]. A log that lies in
// the state directory but cannot be opened is an error: it is never replaced by
// an empty one.
func Start(o Options) (_ *Server, err error) {
	s := &Server{opts: o, log: o.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	store := filepath.Join(o.StateDir, "log")
	if o.Memory {
		if s.temp, err = os.MkdirTemp("", "fermata-memory-"); err != nil {
			return nil, fmt.Errorf("start the NATS server: %w", err)
		}
		store = s.temp
	} else if err := s.lockDirs(); err != nil {
		return nil, err
	}
	stored, err := storedStreams(store)
	if err != nil {
		return nil, err
	}
	s.doors = newDoors()
	if s.nats, err = startServer(s.serverOptions(store), s.doors, s.log); err != nil {
		return nil, err
	}
	return s, allOpened(s.nats, store, stored)
}

func (s *Server) lockDirs() error {
	dirs := []struct{ path, lock string }{{s.opts.StateDir, stateLock}, {s.opts.RuntimeDir, "runtime.lock"}}
	for _, d := range dirs {
		if err := ownDir(d.path); err != nil {
			return err
		}
		f, err := lock(d.path, d.lock)
		if err != nil {
			return err
		}
		s.locks = append(s.locks, f)
	}
	return nil
}

// serverOptions says how the server stores and what it allows.
func (s *Server) serverOptions(store string) *server.Options {
	return &server.Options{
		ServerName:             "fermata",
		DontListen:             true,
		NoSigs:                 true,
		Accounts:               accounts(),
		SystemAccount:          sysAccount,
		JetStream:              true,
		StoreDir:               store,
		JetStreamMaxMemory:     maxMemory,
		JetStreamMaxStore:      s.opts.MaxStore,
		SyncAlways:             s.opts.SyncAlways,
		MaxPayload:             maxPayload,
		MaxPending:             maxPending,
		MaxConn:                maxConnections,
		MaxSubs:                maxSubs,
		WriteDeadline:          writeDeadline,
		AuthTimeout:            (2 * connectTimeout).Seconds(), // the bridge's own limit comes first
		NoFastProducerStall:    true,                           // a slow frontend is closed; it never slows the core
		DisableJetStreamBanner: true,
	}
}

func accounts() []*server.Account {
	return []*server.Account{
		server.NewAccount(coreAccount), server.NewAccount(doorsAccount), server.NewAccount(sysAccount),
	}
}

// startServer runs a server with the given options and opens the log's account.
func startServer(o *server.Options, d *doors, log *slog.Logger) (*server.Server, error) {
	o.CustomClientAuthentication = d
	ns, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("start the NATS server: %w", err)
	}
	lines := &serverLog{log: log}
	ns.SetLoggerV2(lines, false, false, false)
	if err := d.open(ns); err != nil {
		return nil, err
	}
	ns.Start()
	if err := enableLog(ns, d.core); err != nil {
		stop(ns)
		return nil, errors.Join(err, lines.fatal())
	}
	return ns, nil
}

func enableLog(ns *server.Server, account *server.Account) error {
	if !ns.JetStreamEnabled() {
		return errors.New("start the NATS server: its store could not be opened")
	}
	if err := account.EnableJetStream(nil, nil); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	return nil
}

// Core connects in process to the account that holds the log, with all rights.
// Only the core itself may hold such a connection.
func (s *Server) Core(o ...nats.Option) (*nats.Conn, error) {
	return connect(s.nats, s.doors.coreSecret, o)
}

// Doors connects in process to the account of frontends and agents, with all
// rights: the core's side of the doors.
func (s *Server) Doors(o ...nats.Option) (*nats.Conn, error) {
	return connect(s.nats, s.doors.doorsSecret, o)
}

func connect(p nats.InProcessConnProvider, secret string, o []nats.Option) (*nats.Conn, error) {
	own := []nats.Option{
		nats.InProcessServer(p), nats.Token(secret),
		nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0),
	}
	nc, err := nats.Connect("", append(own, o...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to the NATS server in this process: %w", err)
	}
	return nc, nil
}

// Close ends every connection and the server, removes the sockets and frees the
// locks. What was acknowledged stays. Close may be called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	listeners, closed := s.listeners, s.closed
	s.listeners, s.closed = nil, true
	s.mu.Unlock()
	if closed {
		return
	}
	for _, l := range listeners {
		_ = l.Close() // removes the socket; an error means that it was closed already
	}
	if s.nats != nil {
		stop(s.nats)
	}
	for _, f := range s.locks {
		_ = f.Close() // frees the lock; the file stays, unlinking it would let two in
	}
	if s.temp != "" {
		_ = os.RemoveAll(s.temp)
	}
}

func stop(ns *server.Server) {
	ns.Shutdown()
	ns.WaitForShutdown()
}

// secret is 26 characters that nobody can guess (at least 128 bits).
func secret() string { return rand.Text() }
