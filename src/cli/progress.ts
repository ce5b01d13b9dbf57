/**
 * One line on stderr for work that lasts over a second: what, how far, how fast. Silent where stderr is not a
 * terminal, but for one closing line.
 */
import type { Clock } from '../clock.ts';

export interface ProgressTarget {
  readonly isTTY: boolean;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

const width = 24;
const quietMs = 1000;
const redrawMs = 100;

export class Progress {
  readonly #label: string;
  readonly #clock: Clock;
  readonly #target: ProgressTarget;
  readonly #startMs: number;
  #drawnMs = 0;
  #drawn = false;

  constructor(label: string, clock: Clock, target: ProgressTarget = process.stderr) {
    this.#label = label;
    this.#clock = clock;
    this.#target = target;
    this.#startMs = clock.monotonicMs();
  }

  /** `total` 0 means unknown: the bar then only counts. */
  update(done: number, total: number, unit: string): void {
    const now = this.#clock.monotonicMs();
    if (!this.#target.isTTY || now - this.#startMs < quietMs || now - this.#drawnMs < redrawMs) return;
    this.#drawnMs = now;
    this.#drawn = true;
    const seconds = (now - this.#startMs) / 1000;
    const filled = total > 0 ? Math.min(width, Math.floor((done / total) * width)) : 0;
    const bar = total > 0 ? `[${'#'.repeat(filled)}${'.'.repeat(width - filled)}] ${Math.floor((done / total) * 100)} % ` : '';
    const left = total > 0 && done > 0 ? `, ${Math.ceil((seconds / done) * (total - done))} s left` : '';
    const line = `${this.#label} ${bar}${count(done)} ${unit}, ${count(Math.round(done / seconds))}/s${left}`;
    this.#target.write(`\r${line.slice(0, (this.#target.columns ?? 120) - 1)}\u001b[K`);
  }

  /** Clears the bar; leaves one line when the work lasted over a second. */
  finish(done: number, unit: string): void {
    if (this.#drawn) this.#target.write('\r\u001b[K');
    const seconds = (this.#clock.monotonicMs() - this.#startMs) / 1000;
    if (seconds >= 1) this.#target.write(`${this.#label}: ${count(done)} ${unit} in ${seconds.toFixed(1)} s\n`);
  }
}

/** 1234567 -> 1 234 567 */
export function count(n: number): string {
  return n.toLocaleString('en-US').replaceAll(',', ' ');
}
