/** A client of server-sent events, as a browser's would be: one connection, events by name, the last id kept. */
import { get, type IncomingMessage } from 'node:http';

export interface StreamedEvent {
  readonly id: string | null;
  readonly event: string;
  /** As sent: integers keep their digits. */
  readonly data: string;
}

export class EventStream {
  readonly events: StreamedEvent[] = [];
  status = 0;
  /** Text of an answer that is no stream. */
  body = '';
  lastId: string | null = null;
  ended = false;
  readonly #response: Promise<IncomingMessage>;
  #wake: () => void = () => undefined;
  #rest = '';

  constructor(port: number, path: string, headers: Readonly<Record<string, string>>) {
    this.#response = new Promise((resolve, reject) => {
      get({ port, host: '127.0.0.1', path, headers, agent: false }, (response) => {
        this.status = response.statusCode ?? 0;
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => this.#read(chunk));
        response.on('close', () => {
          this.ended = true;
          this.#wake();
        });
        response.on('error', () => undefined);
        resolve(response);
      }).on('error', reject);
    });
  }

  async opened(): Promise<this> {
    await this.#response;
    return this;
  }

  /** Resolves when `enough` says so of the events so far; rejects after `ms`. */
  async until(enough: (events: readonly StreamedEvent[]) => boolean, ms = 5_000): Promise<readonly StreamedEvent[]> {
    await this.#response;
    const late = AbortSignal.timeout(ms);
    while (!enough(this.events)) {
      if (late.aborted || this.ended) throw new Error(`not enough: ${JSON.stringify(this.events)} ${this.body}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        late.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    return this.events;
  }

  async untilEnded(ms = 60_000): Promise<void> {
    await this.#response;
    const late = AbortSignal.timeout(ms);
    while (!this.ended) {
      if (late.aborted) throw new Error('still open');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        late.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }

  async close(): Promise<void> {
    (await this.#response).destroy();
    await this.untilEnded();
  }

  #read(chunk: string): void {
    if (this.status !== 200) this.body += chunk;
    this.#rest += chunk;
    for (let end = this.#rest.indexOf('\n\n'); end >= 0; end = this.#rest.indexOf('\n\n')) {
      this.#take(this.#rest.slice(0, end));
      this.#rest = this.#rest.slice(end + 2);
    }
    this.#wake();
  }

  #take(block: string): void {
    const fields = new Map(
      block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
    );
    const event = fields.get('event');
    if (fields.has('id')) this.lastId = fields.get('id')!;
    if (event !== undefined) this.events.push({ id: fields.get('id') ?? null, event, data: fields.get('data')! });
  }
}
