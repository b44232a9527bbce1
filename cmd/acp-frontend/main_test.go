package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// The test binary is also the program under test and the agents that it runs.
const roleVariable = "ACP_FRONTEND_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "main":
		os.Exit(run(os.Args[1:], os.Stderr))
	default:
		agents[role](os.Args[1:])
	}
}

// agents are programs of a few lines; each gets the arguments behind its name.
var agents = map[string]func(args []string){
	"echo": func([]string) {
		_, err := io.Copy(os.Stdout, os.Stdin)
		exitOn(err)
	},
	// talk writes a stream of its own and hashes what it reads.
	"talk": func(args []string) {
		heard := make(chan []byte)
		go func() {
			hash := sha256.New()
			_, err := io.Copy(hash, os.Stdin)
			exitOn(err)
			heard <- hash.Sum(nil)
		}()
		size, err := strconv.Atoi(args[0])
		exitOn(err)
		_, err = os.Stdout.Write(noise(size))
		exitOn(err)
		fmt.Fprintf(os.Stderr, "%x", <-heard)
	},
	"exit": func(args []string) {
		fmt.Fprint(os.Stdout, "last words")
		fmt.Fprint(os.Stderr, "why it ends")
		code, err := strconv.Atoi(args[0])
		exitOn(err)
		os.Exit(code)
	},
	"kill-itself": func([]string) {
		exitOn(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		waitForEver()
	},
	// signalled tells which signals reach it, and ends at SIGTERM.
	"signalled": func([]string) {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGTERM)
		fmt.Println("ready", syscall.Getpgrp() == os.Getpid())
		for s := range c {
			fmt.Println(s)
			if s == syscall.SIGTERM {
				os.Exit(9)
			}
		}
	},
	// deaf closes its input; mute its output. Both then go on.
	"deaf": func([]string) {
		exitOn(os.Stdin.Close())
		fmt.Println("deaf")
		waitForEver()
	},
	"mute": func([]string) {
		exitOn(os.Stdout.Close())
		_, err := io.Copy(io.Discard, os.Stdin)
		exitOn(err)
	},
	// babble writes until nobody reads.
	"babble": func([]string) {
		for {
			if _, err := fmt.Println("{}"); err != nil {
				os.Exit(5)
			}
		}
	},
	// leaves starts a process that keeps the output open, and exits.
	"leaves": func([]string) {
		child := exec.Command("sleep", "600")
		child.Stdout = os.Stdout
		exitOn(child.Start())
		fmt.Println(child.Process.Pid)
		os.Exit(3)
	},
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

// waitForEver ends with the process.
func waitForEver() {
	r, w, err := os.Pipe()
	exitOn(err)
	_, err = r.Read(make([]byte, 1))
	exitOn(errors.Join(err, w.Close()))
}

// noise is a stream of lines with bytes of every value, the same each time.
func noise(size int) []byte {
	b := make([]byte, size)
	c := rand.NewChaCha8([32]byte{1})
	_, _ = c.Read(b) // never fails
	return b
}

// frontend is the program with an agent behind it, not started.
func frontend(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// env gives the agent its role; our own has the program's.
	argv := append([]string{"--", "env", roleVariable + "=" + role, self}, args...)
	cmd := exec.CommandContext(t.Context(), self, argv...)
	cmd.Env = append(os.Environ(), roleVariable+"=main")
	return cmd
}

func TestLinesPassUnchanged(t *testing.T) {
	streams := map[string][]byte{
		"nothing":               nil,
		"messages":              []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize"}` + "\n" + `{"id":null}` + "\n"),
		"odd spacing and ids":   []byte("{ \"id\" : 1e0 ,\t\"id\":\"0\"}\n{\"a\":\"\\u0061\\/\"}\n"),
		"CRLF":                  []byte("{}\r\n{}\r\n"),
		"empty lines":           []byte("\n\n{}\n\n\r\n\n"),
		"no last line end":      []byte("{}\n{\"id\":1}"),
		"only a part":           []byte("{\"id\":"),
		"no JSON":               []byte("Welcome to the agent\n\x1b[1mbold\x1b[0m\n}{\n"),
		"no UTF-8":              {0xff, 0xfe, 0, '\n', 0xc3, '\n', 0x80},
		"a byte order mark":     []byte("\xef\xbb\xbf{}\n"),
		"other line ends":       []byte("{}\r{}\u2028{}\v\f\n"),
		"a line of 10 MB":       []byte(`{"data":"` + strings.Repeat("x", 10_000_000) + "\"}\n{}\n"),
		"a line over the limit": append(bytes.Repeat([]byte("y"), 70<<20), "\n{}\n"...),
		"bytes of every value":  noise(3_000_000),
		"many short lines":      bytes.Repeat([]byte("{}\n"), 200_000),
	}
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			cmd := frontend(t, "echo")
			cmd.Stdin = bytes.NewReader(stream)
			cmd.Stderr = t.Output()
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out, stream) {
				t.Errorf("%d bytes went in, other %d came out", len(stream), len(out))
			}
		})
	}
}

func TestPiecesArriveAsTheyWereWritten(t *testing.T) {
	cmd := frontend(t, "echo")
	in, out := pipes(t, cmd)
	answers := bufio.NewReader(out)
	for _, line := range []string{"{}\n", "{\"id\":1}\r\n", "\n", strings.Repeat("z", 200_000) + "\n"} {
		for part := range strings.SplitSeq(strings.ReplaceAll(line, "i", "\x00i"), "\x00") {
			write(t, in, part)
		}
		if got, err := answers.ReadString('\n'); err != nil || got != line {
			t.Fatalf("wrote %.40q, read %.40q, %v", line, got, err)
		}
	}
	write(t, in, "the end")
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(answers); err != nil || string(rest) != "the end" {
		t.Errorf("rest %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSlowReadersLoseNothing lets both sides write far more than pipes hold
// before anybody reads.
func TestSlowReadersLoseNothing(t *testing.T) {
	const size = 20_000_000
	cmd := frontend(t, "talk", strconv.Itoa(size))
	var heard bytes.Buffer
	cmd.Stderr = &heard
	in, out := pipes(t, cmd)
	sent := bytes.Repeat([]byte(strings.Repeat("w", 999)+"\n"), 20_000)
	go func() {
		_, _ = in.Write(sent) // a failure shows in what the agent heard
		_ = in.Close()
	}()
	var got bytes.Buffer
	if _, err := io.CopyBuffer(&got, out, make([]byte, 700)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), noise(size)) {
		t.Errorf("the agent wrote %d bytes, other %d arrived", size, got.Len())
	}
	if want := fmt.Sprintf("%x", sha256.Sum256(sent)); heard.String() != want {
		t.Errorf("the agent heard %s, want %s", heard.String(), want)
	}
}

func TestExitStatusAndStderrAreTheAgents(t *testing.T) {
	t.Setenv("FERMATA_CONFIG_DIR", t.TempDir())
	t.Setenv("LC_ALL", "C")
	w := words.In(words.English)
	usage, noAgent := w.Say(words.ACPUsage)+"\n", "acp-frontend: "+w.Say(words.ACPNoAgent)+"\n\n"
	tests := []struct {
		name   string
		cmd    *exec.Cmd
		status int
		stdout string
		stderr string
	}{
		{"0", frontend(t, "exit", "0"), 0, "last words", "why it ends"},
		{"7", frontend(t, "exit", "7"), 7, "last words", "why it ends"},
		{"255", frontend(t, "exit", "255"), 255, "last words", "why it ends"},
		{"killed", frontend(t, "kill-itself"), 128 + 9, "", ""},
		{"not there", direct(t, "--", "/no/such/agent"), 127, "", "acp-frontend: it did not work: start the agent: fork/exec /no/such/agent: no such file or directory\n"},
		{"not in PATH", direct(t, "--", "no-such-agent"), 127, "", "acp-frontend: it did not work: start the agent: exec: \"no-such-agent\": executable file not found in $PATH\n"},
		{"not executable", direct(t, "--", os.DevNull), 126, "", "acp-frontend: it did not work: start the agent: fork/exec /dev/null: permission denied\n"},
		{"no agent", direct(t), 2, "", noAgent + usage},
		{"no dashes", direct(t, "agent"), 2, "", noAgent + usage},
		{"help", direct(t, "--help"), 0, "", usage},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			test.cmd.Stdout, test.cmd.Stderr = &stdout, &stderr
			status := statusOf(t, test.cmd.Run())
			if status != test.status || stdout.String() != test.stdout || stderr.String() != test.stderr {
				t.Errorf("status %d, stdout %q, stderr %q; want %d, %q, %q", status, stdout.String(), stderr.String(), test.status, test.stdout, test.stderr)
			}
		})
	}
}

func TestB125ACPSpeaksTheLanguageOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FERMATA_CONFIG_DIR", dir)
	t.Setenv("LC_ALL", "C")
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("language: zh-Hans\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := direct(t, "--help")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil || !strings.Contains(stderr.String(), "用法：acp-frontend -- AGENT") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}

func TestSignalsReachTheAgentsGroup(t *testing.T) {
	cmd := frontend(t, "signalled")
	_, out := pipes(t, cmd)
	lines := bufio.NewScanner(out)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the agent said %q (%v), want %q", lines.Text(), lines.Err(), want)
		}
	}
	expect("ready true") // it leads a group of its own
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		expect(s.String())
	}
	if status := statusOf(t, cmd.Wait()); status != 9 {
		t.Errorf("status %d, want the agent's 9", status)
	}
}

func TestEitherSideLearnsThatTheOtherStopped(t *testing.T) {
	t.Run("the agent reads no more", func(t *testing.T) {
		cmd := frontend(t, "deaf")
		in, out := pipes(t, cmd)
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "deaf\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if err := writeUntilItFails(in); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("writing to it: %v, want a broken pipe", err)
		}
		stop(t, cmd)
	})
	t.Run("the agent writes no more", func(t *testing.T) {
		cmd := frontend(t, "mute")
		in, out := pipes(t, cmd)
		if b, err := io.ReadAll(out); err != nil || len(b) != 0 {
			t.Errorf("read %q, %v, want the end", b, err)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("the editor reads no more", func(t *testing.T) {
		cmd := frontend(t, "babble")
		_, out := pipes(t, cmd)
		if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		// Go ends a program that writes to a closed stdout by SIGPIPE.
		if status := statusOf(t, cmd.Wait()); status != 128+int(syscall.SIGPIPE) {
			t.Errorf("status %d, want that of a broken pipe", status)
		}
	})
}

func TestAProcessThatTheAgentLeftHoldsNobody(t *testing.T) {
	cmd := frontend(t, "leaves")
	start := time.Now()
	out, err := cmd.Output()
	if status := statusOf(t, err); status != 3 {
		t.Errorf("status %d, want 3", status)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	left, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(left, syscall.SIGKILL); err != nil {
		t.Errorf("the process that the agent left: %v", err)
	}
}

func direct(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"=main")
	return cmd
}

// pipes starts a program between two pipes.
func pipes(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}

func write(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
}

func writeUntilItFails(w io.Writer) error {
	for {
		if _, err := w.Write([]byte("{}\n")); err != nil {
			return err
		}
	}
}

func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := statusOf(t, cmd.Wait()); status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d after SIGTERM", status)
	}
}

func statusOf(t *testing.T, err error) int {
	t.Helper()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}
