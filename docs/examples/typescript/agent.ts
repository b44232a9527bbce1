// An agent with two tools that asks Fermata before each call.
//
//     node agent.ts DIRECTORY ['list_files {}' 'delete_file {"path": "a.txt"}' ...]
//
// A call is a tool's name and its arguments as JSON. Without calls on the command line
// they are read from stdin, one a line. It prints what a model would read, and exits 1
// when a call was refused or failed.

import { readdir, realpath, unlink } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { createInterface } from "node:readline";

import { type Args, Refused, Session } from "./fermata.ts";

type Tool = { kind: string; run: (directory: string, args: Args) => Promise<string> };

const tools: Record<string, Tool> = {
  list_files: {
    kind: "filesystem.read",
    run: async (directory) => (await readdir(directory)).sort().join("\n") || "no files",
  },
  delete_file: {
    kind: "filesystem.write",
    run: async (directory, args) => {
      const path = resolve(directory, String(args["path"]));
      if (dirname(path) !== directory) throw new Error(`${args["path"]} is not a file of ${directory}`);
      await unlink(path);
      return `deleted ${args["path"]}`;
    },
  },
};

async function call(session: Session, directory: string, line: string, signal: AbortSignal): Promise<string> {
  const [, name = "", args = ""] = /^(\S*)\s*(.*)$/.exec(line.trim()) ?? [];
  const tool = tools[name];
  if (!tool) throw new Error(`no tool ${name}`);
  return session.call(name, tool.kind, JSON.parse(args || "{}"), (checked) => tool.run(directory, checked), signal);
}

async function main(directory: string, argv: string[]): Promise<number> {
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort());
  const session = new Session(`example-${process.pid}`, directory);
  let failed = 0;
  for await (const line of argv.length ? argv : createInterface({ input: process.stdin })) {
    try {
      console.log(await call(session, directory, line, interrupted.signal));
    } catch (error) {
      failed = 1;
      console.log(error instanceof Refused ? `refused (${error.code}): ${error.message}` : `failed: ${error}`);
    }
    if (interrupted.signal.aborted) failed = 130;
    if (failed === 130) break;
  }
  await session.close();
  return failed;
}

const [directory, ...argv] = process.argv.slice(2);
if (!directory) {
  console.error("usage: node agent.ts DIRECTORY [CALL...]");
  process.exit(2);
}
process.exit(await main(await realpath(directory), argv));
