package integration_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// built is where the real programs are, built once for a run of the tests.
var built string

func TestMain(m *testing.M) {
	testscript.Main(builder{m}, map[string]func(){
		"agent":    agentMain,
		"claimer":  claimerMain,
		"answerer": answererMain,
		"limited":  limitedMain,
	})
}

// builder builds the real programs before the tests run.
type builder struct{ m *testing.M }

// Run implements testscript.TestingM.
func (b builder) Run() int {
	dir, err := os.MkdirTemp("", "fermata-built-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	alongside()
	build := exec.Command("go", "build", "-o", dir+"/", "./cmd/...")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	return b.m.Run()
}

// alongside lets more tests run at once than there are processors, unless somebody
// said how many: most of them wait for a clock or for another process.
func alongside() {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", "4") // a number is what it takes
	}
}
