package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// coreProcess is the real core in a process of its own.
type coreProcess struct {
	cmd *exec.Cmd
	dir string
	log bytes.Buffer
}

func (c *coreProcess) agentSocket() string { return filepath.Join(c.dir, "r", "agent.sock") }
func (c *coreProcess) natsSocket() string  { return filepath.Join(c.dir, "r", "nats.sock") }

// startCore starts a core on the directories below dir; "" = new ones with the
// given rule. It returns when agent.sock takes connections.
func startCore(ctx context.Context, b *bench, mode, dir, rule string) (_ *coreProcess, err error) {
	if dir == "" {
		if dir, err = b.temp(); err != nil {
			return nil, err
		}
		if err := writeRule(dir, rule); err != nil {
			return nil, err
		}
	}
	c := &coreProcess{dir: dir, cmd: exec.Command(b.program("core"), "serve", "--mode", mode)}
	c.cmd.Env = append(os.Environ(), "FERMATA_CONFIG_DIR="+dir+"/c", "FERMATA_STATE_DIR="+dir+"/s", "FERMATA_RUNTIME_DIR="+dir+"/r")
	c.cmd.Stderr = &c.log
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if err := c.up(ctx); err != nil {
		c.kill()
		return nil, fmt.Errorf("%w\n%s", err, c.log.Bytes())
	}
	return c, nil
}

// up waits until both sockets take connections.
func (c *coreProcess) up(ctx context.Context) error {
	for _, socket := range []string{c.agentSocket(), c.natsSocket()} {
		for began := time.Now(); ; time.Sleep(time.Millisecond) {
			conn, err := net.Dial("unix", socket)
			if err == nil {
				_ = conn.Close()
				break
			}
			if ctx.Err() != nil || time.Since(began) > 20*time.Second {
				return fmt.Errorf("the core does not listen: %w", err)
			}
		}
	}
	return nil
}

// kill ends the core as a crash does.
func (c *coreProcess) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// stop ends the core as a service is ended.
func (c *coreProcess) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	_ = c.cmd.Wait()
}
