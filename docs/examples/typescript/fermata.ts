// Fermata's agents' door for TypeScript: a tool runs when rules and people let it.
//
//   const session = new Session("conversation-1", "/home/ana/web-shop");
//   const text = await session.call("delete_file", "filesystem.write", { path: "a.txt" }, deleteFile);
//   await session.close();
//
// `call` resolves to what the model is to read, or throws `Refused`, whose message tells
// the model why it did not run. Abort its signal, and the question is withdrawn. When the
// core is killed meanwhile, the same call waits on at the next one.
//
// JSON.parse rounds integers beyond 2^53, which a rule could put into the arguments.
//
// The wire is NATS' text protocol with JSON bodies over a Unix socket; A1 and so on are
// the rules of docs/protocol.md. Node 20, nothing from npm.

import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { Connection, Lost, runtimeDir, ulid } from "./connection.ts";

export type Args = Record<string, unknown>;
export type Run = (args: Args, signal?: AbortSignal) => Promise<string>;

const FIRST_CONTACT = 3_000; // ms to look for a core at the beginning (A15)
const AGAIN = 60_000; // and after one was lost
const LAST_WORD = 2_000; // for what is said on the way out

/** It did not run. `message` is the text for the model, `code` says why in a word. */
export class Refused extends Error {
  readonly code: string;
  readonly endReason: string;

  constructor(code: string, message: string, endReason = "") {
    super(message);
    this.code = code;
    this.endReason = endReason;
  }
}

type Refusal = { code: string; hint?: string; end_reason?: string };
type Version = { n: number; digest: string; bytes: number };
type Verdict = { allow: boolean; code: string; end_reason?: string; message?: string; version: Version };

/** One call: its id and secret are ours and new (A1), and stay the same at every core. */
class Operation {
  readonly key = { operation: ulid(), secret: randomBytes(16).toString("hex") };
  readonly what: object;
  on: Connection | undefined; // which has heard of it

  constructor(what: object) {
    this.what = what;
  }
}

/** One conversation of the agent, on a connection of its own. Calls may wait side by side. */
export class Session {
  readonly #id = ulid(); // A6: the server pins it; it stands in every subject that we may use
  readonly #opening: object;
  readonly #socket: string;
  #connection: Connection | undefined;
  #dialling: Promise<Connection> | undefined;
  #subject = "";

  /** Makes a session. The first call opens it: without a core the model hears why, and nothing runs. */
  constructor(native: string, cwd: string, agent = "generic", socket = join(runtimeDir(), "nats.sock")) {
    this.#opening = { agent, native, cwd };
    this.#socket = socket;
  }

  /** Ends the session, and the connection. */
  async close(): Promise<void> {
    if (!this.#connection) return;
    await lastWord(this.tell("session_close"));
    this.#connection.close("closed");
  }

  /** Asks, and runs the tool with what came back: rules may have changed the arguments. */
  async call(tool: string, kind: string, args: Args, run: Run, signal?: AbortSignal, turn = ""): Promise<string> {
    const operation = new Operation({ kind: "tool_call", tool: { name: tool, kind }, args, turn });
    let permitted: Buffer;
    try {
      permitted = await unlessAborted(this.#permitted(operation, signal), signal);
    } catch (error) {
      if (signal?.aborted) {
        await lastWord(this.#about(operation, "withdraw"));
        await lastWord(this.#about(operation, "finish", { outcome: "not_run" })); // if a commit got through
      }
      throw error;
    }
    const ran = digest(permitted);
    const began = performance.now();
    const result = (what: object) => ({ ran, result: { ...what, duration_ms: Math.round(performance.now() - began) } });
    let text: string;
    try {
      text = await run(JSON.parse(permitted.toString()), signal);
    } catch (error) {
      await this.#finish(operation, signal?.aborted ? "unknown" : "failed", result({ error: String(error) }));
      throw error;
    }
    const context = await this.#finish(operation, "ok", result({ text }));
    return context ? `${text}\n\n${context}` : text;
  }

  /** Says what happens in the session: turn_started, turn_ended, interrupt and others (A13). */
  async tell(verb: string, body: object = {}): Promise<void> {
    await untilHeard(async () => this.#send(await this.#connected(), verb, body));
  }

  /** The arguments to run now: somebody has decided so, and the core has confirmed it. */
  async #permitted(operation: Operation, signal?: AbortSignal): Promise<Buffer> {
    return untilHeard(async () => { // A8: when a core is lost, the same operation at the next
      let args: Buffer | undefined;
      while (!args) {
        signal?.throwIfAborted();
        args = decided(await this.#about(operation, "await")); // A9: each keeps the lease
      }
      signal?.throwIfAborted();
      await this.#about(operation, "commit", { digest: digest(args) }); // A11: no commit, no run
      return args;
    });
  }

  /** Reports the end (A12). It has run or not: a refused report must not look like a refused call. */
  async #finish(operation: Operation, outcome: string, more: object = {}): Promise<string> {
    try {
      const reply = await untilHeard(() => this.#about(operation, "finish", { outcome, ...more }));
      return JSON.parse(reply.toString()).extra_context ?? "";
    } catch (error) {
      process.emitWarning(`an end was not recorded: ${error}`);
      return "";
    }
  }

  /** Sends a verb about an operation. Where it is not known yet, propose comes first (A8). */
  async #about(operation: Operation, verb: string, body: object = {}): Promise<Buffer> {
    const connection = await this.#connected();
    if (operation.on !== connection) {
      await this.#send(connection, "propose", { ...operation.key, ...operation.what });
      operation.on = connection;
    }
    try {
      return await this.#send(connection, verb, { ...operation.key, ...body });
    } catch (error) {
      if (verb !== "await" || !(error instanceof Refused) || error.code !== "unknown_operation") throw error;
      operation.on = undefined; // its lease is over, this machine slept: propose tells what became of it
      throw new Lost("the lease is over");
    }
  }

  async #send(connection: Connection, verb: string, body: object): Promise<Buffer> {
    return accepted(connection, await connection.request(`${this.#subject}.op.${this.#id}.${verb}`, body));
  }

  /** The connection that lives, or the next as soon as a core answers. */
  async #connected(): Promise<Connection> {
    if (this.#connection && !this.#connection.lost) return this.#connection;
    this.#dialling ??= this.#dialAgain().finally(() => (this.#dialling = undefined));
    return this.#dialling;
  }

  async #dialAgain(): Promise<Connection> {
    const end = Date.now() + (this.#connection ? AGAIN : FIRST_CONTACT);
    for (;;) {
      try {
        return (this.#connection = await this.#dial(end));
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        if (Date.now() > end) throw refusal("core_unreachable", "Fermata's core cannot be reached.");
      }
      await sleep(50);
    }
  }

  /** A new connection, with the session open on it (A7). */
  async #dial(end: number): Promise<Connection> {
    const connection = new Connection(this.#id, this.#socket);
    const late = setTimeout(() => connection.close("no core in time"), end - Date.now());
    const ask = async (core: string, verb: string, body: object) =>
      JSON.parse(accepted(connection, await connection.request(`fermata.lobby.v1.${core}.op.${this.#id}.${verb}`, body)).toString());
    try {
      const { core } = await ask("all", "cores", {});
      const { project, session } = await ask(core, "session_open", this.#opening);
      this.#subject = `fermata.v1.${project}.${session}`;
      return connection;
    } catch (error) {
      connection.close("not opened");
      throw error;
    } finally {
      clearTimeout(late);
    }
  }
}

/**
 * The arguments that may run, undefined while nothing is decided. They are cut out of the
 * reply and not written anew: 1.0 or 1e3, once parsed, come out as other bytes, and then
 * they are not what was checked (A10).
 */
function decided(reply: Buffer): Buffer | undefined {
  const verdict: Verdict | undefined = JSON.parse(reply.toString()).verdict;
  if (!verdict) return undefined;
  if (verdict.allow !== true) throw new Refused(verdict.code, verdict.message ?? "", verdict.end_reason);
  const name = '"args":';
  const begin = reply.indexOf(name) + name.length;
  const args = reply.subarray(begin, begin + verdict.version.bytes);
  if (digest(args) !== verdict.version.digest) throw refusal("changed_after_check", "Its arguments arrived damaged.");
  return args;
}

/** The reply, if the core took the command. */
function accepted(connection: Connection, reply: Buffer): Buffer {
  const refused: Refusal | undefined = JSON.parse(reply.toString()).refused;
  if (refused?.code === "not_attached") throw connection.close("the core does not know the session"); // A7: open it again
  if (refused) throw refusal(refused.code, refused.hint ?? refused.code, refused.end_reason);
  return reply;
}

function refusal(code: string, why: string, endReason = ""): Refused {
  return new Refused(code, `The tool call did not run. ${why}`, endReason);
}

/** Tries again as long as cores are lost. */
async function untilHeard<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
    }
  }
}

/** Says something on the way out, and does not wait for long. */
async function lastWord(saying: Promise<unknown>): Promise<void> {
  await unlessAborted(saying, AbortSignal.timeout(LAST_WORD)).catch(() => undefined);
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason)));
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener("abort", abort));
}

function digest(data: Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}
