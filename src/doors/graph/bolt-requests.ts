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
const queueMost = { requests: 64, bytes: 1 << 20 } as const;

/** RESET and GOODBYE have no fields, or none that matter: their second byte tells them. */
export const isReset = (requestBody: Buffer): boolean => requestBody[0] === 0xb0 && requestBody[1] === requests.reset;
export const isGoodbye = (requestBody: Buffer): boolean => requestBody[0] === 0xb0 && requestBody[1] === requests.goodbye;
const isPull = (requestBody: Buffer | undefined): boolean =>
  requestBody?.[0] === 0xb1 && (requestBody[1] === requests.pull || requestBody[1] === requests.discard);

export class RequestQueue {
  readonly #requestBodies: Buffer[] = [];
  #requestBytes = 0;
  /** Resets read but not answered yet: requests before them are skipped. */
  #resetCount = 0;

  get isFull(): boolean {
    return this.#requestBodies.length >= queueMost.requests || this.#requestBytes >= queueMost.bytes;
  }

  get hasReset(): boolean {
    return this.#resetCount > 0;
  }

  /** Whether the next request asks for the rows of the one before. */
  get pullIsNext(): boolean {
    return isPull(this.#requestBodies[0]);
  }

  push(requestBody: Buffer): void {
    this.#requestBodies.push(requestBody);
    this.#requestBytes += requestBody.length;
    if (isReset(requestBody)) this.#resetCount++;
  }

  shift(): Buffer | undefined {
    const requestBody = this.#requestBodies.shift();
    this.#requestBytes -= requestBody?.length ?? 0;
    return requestBody;
  }

  countReset(): void {
    this.#resetCount--;
  }
}
