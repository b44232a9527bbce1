// Command bench measures Fermata against its budgets and prints one row for
// each:
//
//	go run ./test/bench [-only WORD] [-rounds N] [-full] [-json] [-profile DIR]
//
// Times are ratios to a floor that runs in the same rounds, interleaved: three
// awaited conditional publishes and two ordered consumers on the same server,
// storage and mode, and nothing else (floor.go). A figure is the median over the
// rounds. A row whose floor varied by more than 30 % between rounds is marked
// invalid: the machine was busy, run it again.
//
// The socket rows run the real core, built anew. The rows about lost answers
// run this program itself as asker and as frontend, in processes of their own. Those
// about the screen run the real tui-frontend in a pseudo-terminal of 80x24.
// -full takes the sizes of the budgets (100,000 questions, a log of a million
// messages); without it the table takes some minutes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	What   string `json:"what"`
	Figure string `json:"figure"`
	Floor  string `json:"floor,omitempty"`
	Ratio  string `json:"ratio,omitempty"`
	Budget string `json:"budget"`
	Met    string `json:"met"` // yes, no, or invalid
	Note   string `json:"note,omitempty"`
}

// bench is one run of this program.
type bench struct {
	rounds  int
	full    bool
	profile string // directory, "" = none
	dir     string // temporary, short enough for sockets
	self    string // this program
}

// measurement makes one or more rows. Its name is what -only looks for.
type measurement struct {
	name string
	run  func(context.Context, *bench) ([]row, error)
}

func measurements() []measurement {
	return []measurement{
		{"appends", appends},
		{"roundtrip-process", roundTrip("process")},
		{"roundtrip-power", roundTrip("power")},
		{"rate-process-64", rate("process", 64)},
		{"rate-process-512", rate("process", 512)},
		{"rate-power-64", rate("power", 64)},
		{"rate-power-512", rate("power", 512)},
		{"lost", lost(0)},
		{"lost-kill", lost(killEvery)},
		{"unmatched", unmatched},
		{"hook-start", hookStart},
		{"hook-overhead", hookOverhead},
		{"verdict-rule", verdictRule},
		{"heap-open", heapOpen},
		{"heap-connected", heapConnected},
		{"restart-1000", restartThousand},
		{"restart-10000", restartLarge},
		{"resume", resume},
		{"idle", idle},
		{"tui", tuiFrames},
	}
}

func main() {
	b := &bench{}
	var p part
	only := flag.String("only", "", "run the measurements whose names contain this word")
	asJSON := flag.Bool("json", false, "print one JSON object a row")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each measurement")
	flag.BoolVar(&b.full, "full", false, "the budgets' own sizes; takes long")
	flag.StringVar(&b.profile, "profile", "", "write CPU and heap profiles of this process to a directory")
	p.flags()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if p.role != "" {
		err = p.play(ctx)
	} else {
		err = b.run(ctx, *only, *asJSON)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, only string, asJSON bool) (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "fb"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := b.build(ctx); err != nil {
		return err
	}
	out := newTable(asJSON)
	for _, m := range measurements() {
		if !strings.Contains(m.name, only) || ctx.Err() != nil {
			continue
		}
		rows, err := b.measure(ctx, m)
		if err != nil {
			rows = append(rows, row{What: m.name, Met: "no", Note: err.Error()})
		}
		for _, r := range rows {
			out.add(r)
		}
	}
	return out.end()
}

// measure runs one measurement, under the profiler if that is wanted.
func (b *bench) measure(ctx context.Context, m measurement) ([]row, error) {
	fmt.Fprintln(os.Stderr, "…", m.name)
	if b.profile == "" {
		return m.run(ctx, b)
	}
	f, err := os.Create(filepath.Join(b.profile, m.name+".cpu"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	defer pprof.StopCPUProfile()
	return m.run(ctx, b)
}

// heapProfile writes what is live now, if that is wanted.
func (b *bench) heapProfile(name string) error {
	if b.profile == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(b.profile, name+".heap"))
	if err != nil {
		return err
	}
	defer f.Close()
	return pprof.WriteHeapProfile(f)
}

// build makes the programs that are measured, as they are released.
func (b *bench) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.dir+"/",
		"github.com/fermata-hitl/fermata/cmd/core", "github.com/fermata-hitl/fermata/cmd/agent-hook",
		"github.com/fermata-hitl/fermata/cmd/tui-frontend",
		"github.com/fermata-hitl/fermata/test/bench/testdata/readexit")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return nil
}

func (b *bench) program(name string) string { return filepath.Join(b.dir, name) }

// temp makes an empty directory.
func (b *bench) temp() (string, error) { return os.MkdirTemp(b.dir, "") }

// table prints rows: JSON at once, text at the end.
type table struct {
	asJSON bool
	text   *tabwriter.Writer
}

func newTable(asJSON bool) *table {
	t := &table{asJSON: asJSON, text: tabwriter.NewWriter(os.Stdout, 0, 1, 2, ' ', 0)}
	if !asJSON {
		fmt.Fprintln(t.text, "what\tfigure\tfloor\tratio\tbudget\tmet\t")
	}
	return t
}

func (t *table) add(r row) {
	if t.asJSON {
		_ = json.NewEncoder(os.Stdout).Encode(r)
		return
	}
	fmt.Fprintf(t.text, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.What, r.Figure, r.Floor, r.Ratio, r.Budget, r.Met, r.Note)
}

func (t *table) end() error { return t.text.Flush() }
