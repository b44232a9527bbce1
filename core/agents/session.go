package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// SessionOptions name a session. All but Native may be zero.
type SessionOptions struct {
	// Agent is the agent's name; "" is the client's.
	Agent events.Agent
	// Native is the agent's own id of the conversation. The same agent and id
	// are the same session, also after a restart.
	Native string
	// Cwd is where the agent works, which says what rules hold; "" is the
	// current directory.
	Cwd string
	// Parent is the session that this one belongs to, nil for none.
	Parent *Session
	// Profile is what rules match as profile.
	Profile string
	// Pane is the terminal's pane that the agent stands in, as [events.ParsePane]
	// reads it; "" for none.
	Pane string
}

// Session is one conversation of an agent.
type Session struct {
	c       *Client
	opening events.SessionOpen

	opens chan struct{} // full while somebody opens it

	mu   sync.Mutex
	link *link // where it is open, nil = nowhere
	at   events.SessionOpenReply
}

// Open opens a session at the core, or takes up one that the core knows.
func (c *Client) Open(ctx context.Context, o SessionOptions) (*Session, error) {
	cwd, err := filepath.Abs(o.Cwd) // "" is the current directory
	if err != nil {
		return nil, err
	}
	s := &Session{c: c, opens: make(chan struct{}, 1), opening: events.SessionOpen{
		Agent: cmp.Or(o.Agent, c.o.Name), Native: o.Native, Cwd: cwd, Profile: o.Profile, Pane: o.Pane,
	}}
	if o.Parent != nil {
		s.opening.Parent = o.Parent.Token()
	}
	_, _, err = s.open(ctx, firstContact)
	return s, err
}

// Token is the session's name in subjects and in the log.
func (s *Session) Token() events.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at.Session
}

// Restored reports whether the log knew the session when it was opened.
func (s *Session) Restored() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at.Restored
}

// open returns a connection at which the session is open.
func (s *Session) open(ctx context.Context, patience time.Duration) (*link, events.SessionOpenReply, error) {
	select {
	case s.opens <- struct{}{}:
		defer func() { <-s.opens }()
	case <-ctx.Done():
		return nil, events.SessionOpenReply{}, context.Cause(ctx)
	}
	for began := time.Now(); ; {
		l, err := s.c.connected(ctx, patience)
		if err != nil {
			return nil, events.SessionOpenReply{}, err
		}
		s.mu.Lock()
		at, open := s.at, s.link == l
		s.mu.Unlock()
		if open {
			return l, at, nil
		}
		to := events.AgentLobbySubject(string(l.core.Core), s.c.id, events.VerbSessionOpen)
		err = l.request(ctx, to, s.opening, &at, replyFor)
		if err == nil {
			s.mu.Lock()
			s.link, s.at = l, at
			s.mu.Unlock()
			return l, at, nil
		}
		if !retry(err) {
			return nil, at, err
		}
		if time.Since(began) >= patience {
			return nil, at, &Unreachable{patience, err}
		}
		if err := sleep(ctx, waitFor(err)); err != nil {
			return nil, at, err
		}
	}
}

// retry reports whether a request may succeed if it is made again.
func retry(err error) bool {
	if r, ok := errors.AsType[*events.Refused](err); ok {
		return r.Code == events.RejectNotAttached || r.Code == events.RejectTooMany
	}
	return errors.Is(err, errAgain)
}

func waitFor(err error) time.Duration {
	if r, ok := errors.AsType[*events.Refused](err); ok && r.Code == events.RejectTooMany {
		return crowdedWait
	}
	return retryWait
}

// once sends one command about the session. The error is errAgain when it may
// have been in vain.
func (s *Session) once(ctx context.Context, verb string, command, reply any, within, patience time.Duration) error {
	l, at, err := s.open(ctx, patience)
	if err != nil {
		return err
	}
	err = l.request(ctx, events.AgentSubject(at.Project, at.Session, s.c.id, verb), command, reply, within)
	if r, ok := errors.AsType[*events.Refused](err); ok && r.Code == events.RejectNotAttached {
		s.mu.Lock()
		if s.link == l {
			s.link = nil
		}
		s.mu.Unlock()
		return fmt.Errorf("%w: %w", errAgain, err)
	}
	return err
}

// ask sends a command that may be sent twice, until it is answered.
func (s *Session) ask(ctx context.Context, verb string, command, reply any, within, patience time.Duration) error {
	for began := time.Now(); ; {
		err := s.once(ctx, verb, command, reply, within, patience)
		if !retry(err) {
			return err
		}
		if time.Since(began) >= withoutCore {
			return &Unreachable{withoutCore, err}
		}
		patience = withoutCore // it may have arrived
		if err := sleep(ctx, waitFor(err)); err != nil {
			return err
		}
	}
}

func (s *Session) tell(ctx context.Context, verb string, command any) error {
	return s.ask(ctx, verb, command, &events.Ack{}, replyFor, firstContact)
}

// Turn says that a turn begins. Calls that name no turn belong to it.
func (s *Session) Turn(ctx context.Context, id string) error {
	return s.tell(ctx, events.VerbTurnStarted, events.SessionSignal{Turn: id})
}

// EndTurn says that a turn is over. What still waits in it ends.
func (s *Session) EndTurn(ctx context.Context, id string) error {
	return s.tell(ctx, events.VerbTurnEnded, events.SessionSignal{Turn: id})
}

// Interrupt says that the user interrupted: everything that waits ends. Say it
// before you end the contexts of what waits.
func (s *Session) Interrupt(ctx context.Context) error {
	return s.tell(ctx, events.VerbInterrupt, events.SessionSignal{})
}

// BuildChanged says that model, profile or settings changed.
func (s *Session) BuildChanged(ctx context.Context) error {
	return s.tell(ctx, events.VerbBuildChanged, events.SessionSignal{})
}

// Observe reports sub_agent_start, sub_agent_end, pre_compact,
// workflow_run_start or workflow_run_end. Path names the run that it is about,
// such as "main > reviewer#1".
func (s *Session) Observe(ctx context.Context, event events.HookEvent, path string) error {
	return s.tell(ctx, events.VerbObserve, events.Observe{Event: event, Path: path})
}

// Close ends the session. What still waits in it ends.
func (s *Session) Close(ctx context.Context) error {
	return s.tell(ctx, events.VerbSessionClose, events.SessionSignal{})
}

// Leave is Close when the agent goes on with another session.
func (s *Session) Leave(ctx context.Context) error {
	return s.tell(ctx, events.VerbSessionClose, events.SessionSignal{Changed: true})
}

// Check tells what would happen to a call: allow, block, ask, or run when a
// program would decide. Nothing is begun, asked or recorded.
func (s *Session) Check(ctx context.Context, call Call, args any) (events.CheckReply, error) {
	raw, err := encode(args)
	if err != nil {
		return events.CheckReply{}, err
	}
	var r events.CheckReply
	err = s.ask(ctx, events.VerbCheck, events.Check{
		Kind: events.KindToolCall, Path: call.Path, Tool: call.tool(), Args: raw,
	}, &r, replyFor, firstContact)
	return r, err
}

// encode writes arguments as JSON, once: what is checked are these bytes.
func encode(args any) (json.RawMessage, error) {
	raw, err := marshal(args)
	if err != nil {
		return nil, fmt.Errorf("these arguments have no JSON: %w", err)
	}
	return raw, nil
}
