package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// hookStart is agent-hook against a socket that answers at once, beside
// /bin/true and a Go program that reads its stdin and exits.
func hookStart(ctx context.Context, b *bench) ([]row, error) {
	dir, err := b.temp()
	if err != nil {
		return nil, err
	}
	run := filepath.Join(dir, "r")
	if err := os.Mkdir(run, 0o700); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", filepath.Join(run, "agent.sock"))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	go answerAtOnce(l)
	env := append(os.Environ(), "FERMATA_RUNTIME_DIR="+run, "FERMATA_STATE_DIR="+dir+"/s", "FERMATA_CONFIG_DIR="+dir+"/c", "FERMATA_AUTOSTART=0")
	programs := [][]string{{"/bin/true"}, {b.program("readexit")}, {b.program("agent-hook"), "generic", "before_tool_call"}}
	figures := make([]series, len(programs))
	for round := range b.rounds + 1 {
		lists := make([][]time.Duration, len(programs))
		for range 40 {
			for i, argv := range programs {
				cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
				cmd.Env, cmd.Stdin = env, strings.NewReader(payload())
				began := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					return nil, fmt.Errorf("%s: %w: %s", argv[0], err, out)
				}
				lists[i] = append(lists[i], time.Since(began))
			}
		}
		for i := range programs {
			if round > 0 {
				figures[i] = append(figures[i], medianOf(lists[i]))
			}
		}
	}
	return []row{
		against("agent-hook, against /bin/true", figures[2], figures[0], millis, atMost(3.5, "≤ 3.5 ×")),
		against("agent-hook, against a Go program that exits", figures[2], figures[1], millis, atMost(1.3, "≤ 1.3 ×")),
	}, nil
}

func answerAtOnce(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			in := bufio.NewReader(c)
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			if _, err := c.Write([]byte("{\"accepted\":true,\"exit\":0,\"stdout\":\"\",\"stderr\":\"\"}\n{\"exit\":0,\"stdout\":\"\",\"stderr\":\"\"}\n")); err != nil {
				return
			}
			_, _ = in.ReadString('\n')
		}()
	}
}

// idle is a core that nobody asks anything, over ten seconds.
func idle(ctx context.Context, b *bench) ([]row, error) {
	c, err := startCore(ctx, b, "power", "", askRule)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	const settle, watch = 2 * time.Second, 10 * time.Second
	if !pause(ctx, settle) {
		return nil, ctx.Err()
	}
	before, err := cpuTicks(c.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	if !pause(ctx, watch) {
		return nil, ctx.Err()
	}
	after, err := cpuTicks(c.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	rss, err := residentMB(c.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere that this runs
	share := 100 * float64(time.Duration(after-before)*tick) / float64(watch)
	return []row{{
		What: "idle core", Figure: fmt.Sprintf("%.1f MB RSS, %.1f %% of a core", rss, share), Budget: "≤ 25 MB, ≤ 1 %",
		Met: yes(rss <= 25 && share <= 1),
	}}, nil
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// cpuTicks is the user and system time of a process.
func cpuTicks(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(f[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(f[12])
	return user + system, err
}

func residentMB(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	return float64(pages) * float64(os.Getpagesize()) / 1e6, err
}
