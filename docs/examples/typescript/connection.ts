// A NATS connection, as far as Fermata's door needs one: requests and their replies.

import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { join } from "node:path";

const ANSWER = 35_000; // ms for one reply; the core answers an await within 25 s

/** The connection ended, or nobody answered on it. */
export class Lost extends Error {}

type Waiting = { resolve: (reply: Buffer) => void; reject: (why: Error) => void };

/** A connection to the core. Its id is pinned: it stands in every subject that it may use. */
export class Connection {
  lost: Lost | undefined;
  readonly #inbox: string;
  readonly #socket: Socket;
  readonly #waiting = new Map<string, Waiting>();
  #number = 0;
  #unread: Buffer = Buffer.alloc(0);

  constructor(id: string, path: string) {
    this.#inbox = `_IB.${id}.`;
    this.#socket = connect(path);
    this.#socket.on("data", (data) => this.#read(data as Buffer)); // no encoding is set
    this.#socket.on("error", (error) => this.close(error.message));
    this.#socket.on("close", () => this.close("the core went away"));
    const hello = { name: `op.${id}`, verbose: false, headers: true, no_responders: true, protocol: 1 };
    this.#socket.write(`CONNECT ${JSON.stringify(hello)}\r\nSUB ${this.#inbox}* 1\r\n`);
  }

  /** Sends a body and returns the reply. A core that does not answer in time is lost. */
  async request(subject: string, body: object): Promise<Buffer> {
    if (this.lost) throw this.lost;
    const inbox = this.#inbox + this.#number++;
    const data = JSON.stringify(body);
    const late = setTimeout(() => this.close("no answer in time"), ANSWER);
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        this.#waiting.set(inbox, { resolve, reject });
        this.#socket.write(`PUB ${subject} ${inbox} ${Buffer.byteLength(data)}\r\n${data}\r\n`);
      });
    } finally {
      clearTimeout(late);
      this.#waiting.delete(inbox);
    }
  }

  /** Ends the connection and every request that waits on it. */
  close(why: string): Lost {
    this.lost ??= new Lost(why);
    this.#socket.destroy();
    for (const { reject } of this.#waiting.values()) reject(this.lost);
    return this.lost;
  }

  #read(data: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, data]);
    let end: number;
    while (!this.lost && (end = this.#unread.indexOf("\r\n")) >= 0) {
      const line = this.#unread.toString("utf8", 0, end);
      const [verb, ...fields] = line.split(/\s+/);
      let next = end + 2;
      if (verb === "MSG" || verb === "HMSG") { // subject, sid, [size of headers,] size
        const begin = next + (verb === "HMSG" ? Number(fields.at(-2)) : 0);
        const finish = next + Number(fields.at(-1));
        next = finish + 2;
        if (this.#unread.length < next) return; // the rest is on its way
        if (begin === finish) this.close("no core listens there"); // headers alone are NATS' 503
        this.#waiting.get(fields[0] ?? "")?.resolve(this.#unread.subarray(begin, finish));
      } else if (verb === "PING") {
        this.#socket.write("PONG\r\n");
      } else if (verb === "-ERR") {
        this.close(line);
      }
      this.#unread = this.#unread.subarray(next);
    }
  }
}

/** An id: 48 bits of time and 80 of chance, in Crockford's base 32, lower case. */
export function ulid(): string {
  let n = (BigInt(Date.now()) << 80n) | BigInt("0x" + randomBytes(10).toString("hex"));
  let id = "";
  for (; id.length < 26; n >>= 5n) id = "0123456789abcdefghjkmnpqrstvwxyz".charAt(Number(n & 31n)) + id;
  return id;
}

/** Where the core's sockets are. */
export function runtimeDir(): string {
  const { FERMATA_RUNTIME_DIR: own, XDG_RUNTIME_DIR: xdg, TMPDIR: tmp } = process.env;
  if (own) return own;
  if (xdg?.startsWith("/")) return join(xdg, "fermata");
  return join(tmp?.startsWith("/") ? tmp : "/tmp", `fermata-${process.getuid?.()}`);
}
