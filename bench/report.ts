/** What a bench run found: samples per measure and product, as one table for people and JSON lines for machines. */
import { appendFileSync, writeFileSync } from 'node:fs';

export interface Finding {
  readonly measure: string;
  readonly product: string;
  readonly unit: string;
  /** Larger is better for a rate, smaller for a time. */
  readonly better: 'larger' | 'smaller';
  readonly samples: readonly number[];
  readonly note?: string;
}

const ours = 'annals';

export class Report {
  readonly #file: string;
  readonly #findings: Finding[] = [];
  readonly #skipped: string[] = [];

  constructor(file: string) {
    this.#file = file;
    writeFileSync(file, '');
  }

  add(finding: Finding): void {
    this.#findings.push(finding);
    const { median, min, max } = summary(finding.samples);
    appendFileSync(this.#file, `${JSON.stringify({ ...finding, median, min, max })}\n`);
    console.log(
      `  ${finding.measure}: ${finding.product} ${short(median)} ${finding.unit}${finding.note ? ` (${finding.note})` : ''}`,
    );
  }

  skip(what: string, why: string): void {
    this.#skipped.push(`${what}: ${why}`);
    appendFileSync(this.#file, `${JSON.stringify({ skipped: what, why })}\n`);
    console.log(`  skipped ${what}: ${why}`);
  }

  /** One line per measure and product; the ratio is how many times better Annals did. */
  table(): string {
    const rows = [['measure', 'product', 'unit', 'median', 'min .. max', 'annals is']];
    const measures = [...new Set(this.#findings.map(({ measure }) => measure))];
    for (const measure of measures) {
      const group = this.#findings.filter((finding) => finding.measure === measure);
      const own = group.find(({ product }) => product === ours);
      for (const finding of group) {
        const { median, min, max } = summary(finding.samples);
        rows.push([
          finding === group[0] ? measure : '',
          finding.product,
          finding.unit,
          short(median),
          `${short(min)} .. ${short(max)}`,
          own === undefined || finding === own ? '' : `${ratio(own, finding).toFixed(2)}x`,
        ]);
      }
    }
    const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
    const lines = rows.map((row) =>
      row.map((cell, column) => (column < 3 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join('  '),
    );
    lines.splice(1, 0, widths.map((width) => '-'.repeat(width)).join('  '));
    return [...lines, ...this.#skipped.map((line) => `skipped ${line}`)].join('\n');
  }
}

function ratio(own: Finding, peer: Finding): number {
  const [a, b] = [summary(own.samples).median, summary(peer.samples).median];
  return own.better === 'larger' ? a / b : b / a;
}

export function summary(samples: readonly number[]): { median: number; min: number; max: number } {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, min: sorted[0]!, max: sorted.at(-1)! };
}

function short(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}
