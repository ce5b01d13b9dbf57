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

const progressBarWidth = 24;
const progressQuietMs = 1000;
const progressRedrawMs = 100;

export class Progress {
  readonly #progressLabel: string;
  readonly #progressClock: Clock;
  readonly #progressTarget: ProgressTarget;
  readonly #progressStartMs: number;
  #lastDrawnMs = 0;
  #isDrawn = false;

  constructor(progressLabel: string, progressClock: Clock, progressTarget: ProgressTarget = process.stderr) {
    this.#progressLabel = progressLabel;
    this.#progressClock = progressClock;
    this.#progressTarget = progressTarget;
    this.#progressStartMs = progressClock.monotonicMs();
  }

  /** `totalUnits` 0 means unknown: the bar then only counts. */
  update(doneUnits: number, totalUnits: number, progressUnit: string): void {
    const nowMs = this.#progressClock.monotonicMs();
    if (
      !this.#progressTarget.isTTY ||
      nowMs - this.#progressStartMs < progressQuietMs ||
      nowMs - this.#lastDrawnMs < progressRedrawMs
    )
      return;
    this.#lastDrawnMs = nowMs;
    this.#isDrawn = true;
    const elapsedSeconds = (nowMs - this.#progressStartMs) / 1000;
    const filledWidth = totalUnits > 0 ? Math.min(progressBarWidth, Math.floor((doneUnits / totalUnits) * progressBarWidth)) : 0;
    const progressBar =
      totalUnits > 0
        ? `[${'#'.repeat(filledWidth)}${'.'.repeat(progressBarWidth - filledWidth)}] ${Math.floor((doneUnits / totalUnits) * 100)} % `
        : '';
    const timeLeftText =
      totalUnits > 0 && doneUnits > 0 ? `, ${Math.ceil((elapsedSeconds / doneUnits) * (totalUnits - doneUnits))} s left` : '';
    const progressLine = `${this.#progressLabel} ${progressBar}${count(doneUnits)} ${progressUnit}, ${count(Math.round(doneUnits / elapsedSeconds))}/s${timeLeftText}`;
    this.#progressTarget.write(`\r${progressLine.slice(0, (this.#progressTarget.columns ?? 120) - 1)}\u001b[K`);
  }

  /** Clears the bar; leaves one line when the work lasted over a second. */
  finish(doneUnits: number, progressUnit: string): void {
    if (this.#isDrawn) this.#progressTarget.write('\r\u001b[K');
    const elapsedSeconds = (this.#progressClock.monotonicMs() - this.#progressStartMs) / 1000;
    if (elapsedSeconds >= 1)
      this.#progressTarget.write(
        `${this.#progressLabel}: ${count(doneUnits)} ${progressUnit} in ${elapsedSeconds.toFixed(1)} s\n`,
      );
  }
}

/** 1234567 -> 1 234 567 */
export function count(countedNumber: number): string {
  return countedNumber.toLocaleString('en-US').replaceAll(',', ' ');
}
