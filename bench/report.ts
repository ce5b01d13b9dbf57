/**
 * What a bench run found: samples per measure and product, and the figures that a goal or `--check` looks at; as tables for
 * people, as Markdown for README, as JSON lines for machines.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import { type Aim, type AimName, aims, isMet } from './goals.ts';

export interface Finding {
  readonly measure: string;
  readonly product: string;
  readonly unit: string;
  /** Larger is better for a rate, smaller for a time. */
  readonly better: 'larger' | 'smaller';
  readonly samples: readonly number[];
  readonly note?: string;
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

const ours = 'annals';

export class Report {
  readonly #file: string;
  readonly #findings: Finding[] = [];
  readonly #figures = new Map<AimName, Spread>();
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

  /** A figure that has a goal, or a ratio that `--check` watches. */
  figure(name: AimName, found: Spread): void {
    this.#figures.set(name, found);
    appendFileSync(this.#file, `${JSON.stringify({ figure: name, ...found })}\n`);
    console.log(`  ${aims[name].text}: ${spreadText(aims[name], found)}${verdict(aims[name], found)}`);
  }

  skip(what: string, why: string): void {
    this.#skipped.push(`${what}: ${why}`);
    appendFileSync(this.#file, `${JSON.stringify({ skipped: what, why })}\n`);
    console.log(`  skipped ${what}: ${why}`);
  }

  /** Medians of the ratios by name. */
  ratios(): Map<AimName, number> {
    return new Map([...this.#figures].filter(([name]) => aims[name].unit === 'x').map(([name, { median }]) => [name, median]));
  }

  /** One line per measure and product; the ratio is how many times better Annals did. */
  table(): string {
    const rows = [['measure', 'product', 'unit', 'median', 'min .. max', 'annals is']];
    for (const [measure, group] of this.#groups()) {
      const own = group.find(({ product }) => product === ours);
      for (const finding of group) {
        const { median, min, max } = summary(finding.samples);
        rows.push([
          finding === group[0] ? measure : '',
          finding.product,
          finding.unit,
          short(median),
          `${short(min)} .. ${short(max)}`,
          own === undefined || finding === own ? '' : `${timesBetter(own, finding).toFixed(2)}x`,
        ]);
      }
    }
    return [...aligned(rows, 3), ...this.#skipped.map((line) => `skipped ${line}`)].join('\n');
  }

  /** One line per figure, with its goal. */
  goals(): string {
    const rows = [['figure', 'found', 'min .. max', 'goal', '']];
    for (const [name, found] of this.#figures) {
      const aim: Aim = aims[name];
      const met = isMet(aim, found.median);
      rows.push([
        aim.text,
        `${short(found.median)} ${aim.unit}`,
        `${short(found.min)} .. ${short(found.max)}`,
        aim.wanted === null ? '' : goalText(aim),
        met === null ? '' : met ? 'met' : 'MISSED',
      ]);
    }
    return aligned(rows, 1).join('\n');
  }

  /** Both tables, ready to paste. */
  markdown(): string {
    const figures = [...this.#figures].map(([name, found]) => {
      const aim: Aim = aims[name];
      const met = isMet(aim, found.median);
      const goal = met === null ? '' : `${goalText(aim)}, ${met ? 'met' : '**missed**'}`;
      return `| ${aim.text} | ${short(found.median)} ${aim.unit} (${short(found.min)} to ${short(found.max)}) | ${goal} |`;
    });
    const cell = ({ product, samples, unit }: Finding, named: boolean): string => {
      const { median, min, max } = summary(samples);
      return `${named ? `${product} ` : ''}${short(median)} ${unit} (${short(min)} to ${short(max)})`;
    };
    const measures = this.#groups().map(([measure, group]) => {
      const own = group.filter(({ product }) => product.startsWith(ours));
      const peers = group.filter(({ product }) => !product.startsWith(ours));
      const left = own.map((finding) =>
        finding.product === ours ? cell(finding, false) : `${finding.product.slice(ours.length + 2)}: ${cell(finding, false)}`,
      );
      return `| ${measure} | ${left.join('; ')} | ${peers.map((peer) => cell(peer, true)).join('; ')} |`;
    });
    return [
      '| figure | found | goal |',
      '|---|---|---|',
      ...figures,
      '',
      '| measure | Annals | beside it |',
      '|---|---|---|',
      ...measures,
    ].join('\n');
  }

  #groups(): [measure: string, group: Finding[]][] {
    const measures = [...new Set(this.#findings.map(({ measure }) => measure))];
    return measures.map((measure) => [measure, this.#findings.filter((finding) => finding.measure === measure)]);
  }
}

/** Samples over samples: the spread is that of the least lucky pairs. */
export function quotient(above: readonly number[], below: readonly number[]): Spread {
  const [a, b] = [summary(above), summary(below)];
  return { median: a.median / b.median, min: a.min / b.max, max: a.max / b.min };
}

/** One figure of many ratios. */
export function geometricMean(ratios: readonly Spread[]): Spread {
  const mean = (of: (ratio: Spread) => number): number =>
    Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(of(ratio)), 0) / ratios.length);
  return { median: mean(({ median }) => median), min: mean(({ min }) => min), max: mean(({ max }) => max) };
}

export function worst(ratios: readonly Spread[]): Spread {
  return ratios.reduce((a, b) => (b.median > a.median ? b : a));
}

export function summary(samples: readonly number[]): Spread {
  const sorted = samples.toSorted((a, b) => a - b);
  return { median: quantile(sorted, 0.5), min: sorted[0]!, max: sorted.at(-1)! };
}

/** Of sorted samples; between two of them the middle. */
export function quantile(sorted: readonly number[], q: number): number {
  const at = (sorted.length - 1) * q;
  return (sorted[Math.floor(at)]! + sorted[Math.ceil(at)]!) / 2;
}

function timesBetter(own: Finding, peer: Finding): number {
  const [a, b] = [summary(own.samples).median, summary(peer.samples).median];
  return own.better === 'larger' ? a / b : b / a;
}

function spreadText({ unit }: Aim, { median, min, max }: Spread): string {
  return `${short(median)} ${unit} (${short(min)} .. ${short(max)})`;
}

function goalText({ better, wanted, unit }: Aim): string {
  return `${better === 'larger' ? '≥' : '≤'} ${wanted!.toLocaleString('en')} ${unit}`;
}

function verdict(aim: Aim, { median }: Spread): string {
  const met = isMet(aim, median);
  return met === null ? '' : `; goal ${goalText(aim)} ${met ? 'met' : 'MISSED'}`;
}

/** Columns before `firstNumber` stand left. */
function aligned(rows: readonly (readonly string[])[], firstNumber: number): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => (column < firstNumber ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd(),
  );
  lines.splice(1, 0, widths.map((width) => '-'.repeat(width)).join('  '));
  return lines;
}

function short(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}
