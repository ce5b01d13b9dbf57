/**
 * Turns of transactions about rows in which their clients met a conflict: instead of running at once, to be refused again, such a
 * transaction waits before its first statement for earlier ones that write the same. Invariants: a waiting one holds nothing, and
 * waits no longer than `waitMsMax`; none waits longer than `turnMs` for one that does not end; no other waits at all.
 */
import type { Clock } from '../../clock.ts';

const waitMsMax = 10_000;
const turnMs = 1_000;
/** A transaction does not wait when so many of its tenant already do. */
const turnsMax = 256;

type TurnClock = Pick<Clock, 'sleep' | 'monotonicMs'>;

export class Turn {
  readonly rows: ReadonlySet<string>;
  readonly #over: Promise<void>;
  readonly #turns: Turns;
  readonly #tenant: string | null;
  /** Turns of its tenant, from its first statement on until it has left. */
  #line: Turn[] | null = null;
  #end: () => void = () => undefined;
  /** When it no longer waited. */
  #begunMs: number | null = null;
  #isContended = false;

  constructor(turns: Turns, tenant: string | null, rows: ReadonlySet<string>) {
    this.rows = rows;
    this.#over = new Promise((resolve) => (this.#end = resolve));
    this.#turns = turns;
    this.#tenant = tenant;
  }

  /** Null where none is before it, or too many are. */
  begin(gone: AbortSignal | undefined): Promise<void> | null {
    if (this.#line !== null) return null;
    const line = this.#turns.lineOf(this.#tenant);
    if (line.length >= turnsMax) return null;
    this.#line = line;
    line.push(this);
    const before = this.#before();
    if (before !== undefined) return this.#wait(before, gone);
    this.#begunMs = this.#turns.clock.monotonicMs();
    return null;
  }

  /** Other clients wanted the same rows: its client should take a turn again. */
  get isContended(): boolean {
    return this.#isContended;
  }

  leave(): void {
    const line = this.#line;
    if (line === null || !line.includes(this)) return;
    line.splice(line.indexOf(this), 1);
    if (line.length === 0) this.#turns.drop(this.#tenant);
    if (line.some((other) => this.#meets(other))) this.#isContended = true;
    this.#end();
  }

  async #wait(first: Turn, gone: AbortSignal | undefined): Promise<void> {
    this.#isContended = true;
    const { clock } = this.#turns;
    const endMs = clock.monotonicMs() + waitMsMax;
    for (let before: Turn | undefined = first; before !== undefined; before = this.#before()) {
      const nowMs = clock.monotonicMs();
      if (gone?.aborted === true || nowMs >= endMs) break;
      const leftMs = Math.min(endMs, (before.#begunMs ?? nowMs) + turnMs) - nowMs;
      await before.#overOr(leftMs, clock, gone);
    }
    this.#begunMs = clock.monotonicMs();
  }

  async #overOr(ms: number, clock: TurnClock, gone: AbortSignal | undefined): Promise<void> {
    const called = new AbortController();
    const callOff = (): void => called.abort();
    gone?.addEventListener('abort', callOff);
    await Promise.race([this.#over, clock.sleep(ms, called.signal)]);
    gone?.removeEventListener('abort', callOff);
    callOff();
  }

  /** The nearest one that it has to wait for. */
  #before(): Turn | undefined {
    const line = this.#line!;
    const nowMs = this.#turns.clock.monotonicMs();
    for (let at = line.indexOf(this) - 1; at >= 0; at--) {
      const other = line[at]!;
      if ((other.#begunMs === null || nowMs - other.#begunMs < turnMs) && this.#meets(other)) return other;
    }
    return undefined;
  }

  #meets({ rows }: Turn): boolean {
    for (const row of this.rows) if (rows.has(row)) return true;
    return false;
  }
}

export class Turns {
  readonly clock: TurnClock;
  readonly #lines = new Map<string | null, Turn[]>();

  constructor(clock: TurnClock) {
    this.clock = clock;
  }

  lineOf(tenant: string | null): Turn[] {
    let line = this.#lines.get(tenant);
    if (line === undefined) this.#lines.set(tenant, (line = []));
    return line;
  }

  drop(tenant: string | null): void {
    this.#lines.delete(tenant);
  }
}
