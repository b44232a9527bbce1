package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core/agents"
)

var update = flag.Bool("update", false, "write table.go from core/agents")

// The table in the binary is a copy of core/agents', which agent-hook must not
// import.
func TestTableIsThatOfCoreAgents(t *testing.T) {
	want := tableSource(t)
	if *update {
		if err := os.WriteFile("table.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("table.go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("table.go is not current; run go generate ./cmd/agent-hook (-want +got):\n%s", diff)
	}
}

func tableSource(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("// Code generated from core/agents by go generate. DO NOT EDIT.\n\npackage main\n\n" +
		"//go:generate go test -run TestTableIsThatOfCoreAgents -update\n\n" +
		"// table is every event that agent-hook accepts.\nvar table = [...]event{\n")
	for _, e := range agents.Table() {
		fmt.Fprintf(&b, "\t{agent: %q, name: %q", e.Agent, e.Name)
		if e.Timeout > 0 {
			fmt.Fprintf(&b, ", timeout: %g", e.Timeout.Seconds())
		}
		if e.Gated {
			fmt.Fprintf(&b, ", gated: true, deny: `%s`", e.Deny)
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
	src, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return src
}
