package hooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// Each script reads the payload file, looks at one argument, and asks.
var realScripts = []struct {
	name     string
	programs []string // any of them can run it
	text     string
}{
	{"a.py", []string{"uv", "python3", "python"}, `
import json, os
p = json.load(open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"]))
assert p["tool"]["args"]["command"] == "echo <a> & b\u2028", p
json.dump({"action": "ask", "reason": "原因"}, open(os.environ["CHRYS_HOOK_RESULT"], "w"), ensure_ascii=False)
`},
	{"a.sh", []string{"bash", "sh"}, `
case $(cat "$CHRYS_HOOK_PAYLOAD_FILE") in *'"command":"echo <a> & b'*) ;; *) exit 1 ;; esac
printf '{"action":"ask","reason":"原因"}' >"$CHRYS_HOOK_RESULT"
`},
	{"a.js", []string{"node"}, `
const fs = require("fs");
const p = JSON.parse(fs.readFileSync(process.env.CHRYS_HOOK_PAYLOAD_FILE, "utf8"));
if (p.tool.args.command !== "echo <a> & b\u2028") process.exit(1);
fs.writeFileSync(process.env.CHRYS_HOOK_RESULT, JSON.stringify({action: "ask", reason: "原因"}));
`},
	{"a.mjs", []string{"node"}, `
import fs from "node:fs";
const p = JSON.parse(fs.readFileSync(0, "utf8"));
if (p.tool.args.command !== "echo <a> & b\u2028") process.exit(1);
fs.writeFileSync(process.env.CHRYS_HOOK_RESULT, JSON.stringify({action: "ask", reason: "原因"}));
`},
	{"a.rb", []string{"ruby"}, `
require "json"
p = JSON.parse(File.read(ENV["CHRYS_HOOK_PAYLOAD_FILE"], encoding: "UTF-8"))
exit 1 unless p["tool"]["args"]["command"] == "echo <a> & b\u2028"
File.write(ENV["CHRYS_HOOK_RESULT"], JSON.generate({action: "ask", reason: "原因"}))
`},
	{"a.pl", []string{"perl"}, `
open(my $in, "<", $ENV{CHRYS_HOOK_PAYLOAD_FILE}) or die; my $p = do { local $/; <$in> };
index($p, '"command":"echo <a> & b') >= 0 or exit 1;
open(my $out, ">", $ENV{CHRYS_HOOK_RESULT}) or die; print $out '{"action":"ask","reason":"原因"}';
`},
	{"a.ps1", []string{"pwsh", "powershell"}, `
$p = Get-Content -Raw -Encoding utf8 $env:CHRYS_HOOK_PAYLOAD_FILE | ConvertFrom-Json
if (-not $p.tool.args.command.StartsWith("echo <a> & b")) { exit 1 }
[IO.File]::WriteAllText($env:CHRYS_HOOK_RESULT, '{"action":"ask","reason":"原因"}')
`},
}

func found(programs ...string) bool {
	return slices.ContainsFunc(programs, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// Whatever this machine has must run its script; what it has not must be named.
func TestEveryRuntime(t *testing.T) {
	for _, tc := range realScripts {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			r.write(tc.name, tc.text, 0o600)
			got := r.run(r.hook("run: {type: script, path: "+tc.name+"}", "execution: {mode: blocking}"))
			if !found(tc.programs...) {
				refused(t, got, events.CodeHookMissing, "no "+strings.Join(tc.programs, " or ")+" was found in PATH")
				return
			}
			if got.Effect != events.EffectAsk || got.Reason != "原因" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// npx would rather run what the working directory holds under the name tsx, and
// that is the agent's ground: it looks beside the hooks file instead.
func TestTypeScriptIsNotRunByTheAgentsOwnProgram(t *testing.T) {
	r := newRoom(t)
	const allows = "#!/bin/sh\necho the agent\n"
	const asks = "#!/bin/sh\n" + writeAsk + "\nhead -n 1 \"$1\"; pwd\n"
	for dir, text := range map[string]string{r.cwd: allows, r.home: asks} {
		bin := filepath.Join(dir, "node_modules", ".bin")
		if err := os.MkdirAll(bin, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(bin+"/tsx", []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.write("a.ts", "const a: number = 1;\n", 0o600)
	got := r.run(r.hook("run: {type: script, path: a.ts}", "execution: {mode: blocking}"))
	if !found("npx") {
		refused(t, got, events.CodeHookMissing, "no npx was found in PATH")
		return
	}
	if want := "const a: number = 1;\n" + r.cwd + "\n"; got.Effect != events.EffectAsk || got.Stdout != want {
		t.Errorf("%+v", got)
	}
}
