package natsd

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// serverLog passes the NATS server's lines on and keeps the last fatal one, so
// that an error can say why the server did not start.
type serverLog struct {
	log *slog.Logger

	mu   sync.Mutex
	last string
}

func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return nil
	}
	return errors.New(l.last)
}

// Noticef and the methods below are what the server calls.
func (l *serverLog) Noticef(f string, v ...any) { l.log.Debug("nats: " + fmt.Sprintf(f, v...)) }

// Warnf is a condition that the server goes on with. What it says at each start
// is about our own choices, not about a condition.
func (l *serverLog) Warnf(f string, v ...any) { l.log.Debug("nats: " + fmt.Sprintf(f, v...)) }

// Errorf is mostly something that a client did.
func (l *serverLog) Errorf(f string, v ...any) { l.log.Warn("nats: " + fmt.Sprintf(f, v...)) }

// Debugf is never enabled.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef is never enabled.
func (l *serverLog) Tracef(string, ...any) {}

// Fatalf ends the server; it must not end the process.
func (l *serverLog) Fatalf(f string, v ...any) {
	text := fmt.Sprintf(f, v...)
	l.log.Error("nats: " + text)
	l.mu.Lock()
	l.last = text
	l.mu.Unlock()
}
