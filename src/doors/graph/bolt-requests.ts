/** Requests of a Bolt client that wait while another one runs, and the tags by which they begin. */

export const requests = {
  hello: 0x01,
  goodbye: 0x02,
  reset: 0x0f,
  run: 0x10,
  begin: 0x11,
  commit: 0x12,
  rollback: 0x13,
  discard: 0x2f,
  pull: 0x3f,
  telemetry: 0x54,
  route: 0x66,
  logon: 0x6a,
  logoff: 0x6b,
} as const;

/** Requests that may wait while another runs, and their bytes: more are not read. */
const most = { requests: 64, bytes: 1 << 20 } as const;

/** RESET and GOODBYE have no fields, or none that matter: their second byte tells them. */
export const isReset = (body: Buffer): boolean => body[0] === 0xb0 && body[1] === requests.reset;
export const isGoodbye = (body: Buffer): boolean => body[0] === 0xb0 && body[1] === requests.goodbye;
const isPull = (body: Buffer | undefined): boolean =>
  body?.[0] === 0xb1 && (body[1] === requests.pull || body[1] === requests.discard);

export class RequestQueue {
  readonly #bodies: Buffer[] = [];
  #bytes = 0;
  /** Resets read but not answered yet: requests before them are skipped. */
  #resets = 0;

  get isFull(): boolean {
    return this.#bodies.length >= most.requests || this.#bytes >= most.bytes;
  }

  get hasReset(): boolean {
    return this.#resets > 0;
  }

  /** Whether the next request asks for the rows of the one before. */
  get pullIsNext(): boolean {
    return isPull(this.#bodies[0]);
  }

  push(body: Buffer): void {
    this.#bodies.push(body);
    this.#bytes += body.length;
    if (isReset(body)) this.#resets++;
  }

  shift(): Buffer | undefined {
    const body = this.#bodies.shift();
    this.#bytes -= body?.length ?? 0;
    return body;
  }

  countReset(): void {
    this.#resets--;
  }
}
