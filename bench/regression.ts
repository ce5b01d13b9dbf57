/**
 * The check on ratios: `ratios.json` keeps what was accepted for each of them, once for quick runs and once for full ones.
 * A ratio has fallen when it is worse than the accepted one by more than its tolerance; getting better is no failure.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Aim, aims, measureOf } from './goals.ts';

export interface Accepted {
  readonly accepted: number;
  /** A share of what was accepted. */
  readonly tolerance: number;
}

export type Size = 'quick' | 'full';
export type AcceptedRatios = Readonly<Record<Size, Readonly<Record<string, Accepted>>>>;

/** Committed beside this file. */
export const ratiosFile = fileURLToPath(new URL('ratios.json', import.meta.url));
/** Of a ratio that is accepted for the first time. Quick runs have one sample of each thing. */
function firstTolerance(name: string, size: Size): number {
  const { tolerance = 0.25, better }: Aim = aims[name as keyof typeof aims];
  if (size === 'full') return tolerance;
  // What may fall can't fall by more than all of itself.
  return better === 'larger' ? Number((1 - (1 - tolerance) ** 2).toFixed(2)) : tolerance * 2;
}

/** One line for each ratio that fell, was not found though its measure ran, or that nobody has accepted yet. */
export function fallen(
  found: ReadonlyMap<string, number>,
  accepted: Readonly<Record<string, Accepted>>,
  ran: readonly string[],
): string[] {
  const lines: string[] = [];
  for (const [name, value] of found) {
    const entry = accepted[name];
    if (entry === undefined) {
      lines.push(`${name}: ${value.toFixed(3)} has no accepted ratio yet; --accept writes it`);
      continue;
    }
    const { better }: Aim = aims[name as keyof typeof aims];
    const limit = entry.accepted * (better === 'larger' ? 1 - entry.tolerance : 1 + entry.tolerance);
    if (better === 'larger' ? value >= limit : value <= limit) continue;
    lines.push(
      `${name}: ${value.toFixed(3)} is ${better === 'larger' ? 'below' : 'above'} ${limit.toFixed(3)} (accepted ${entry.accepted}, tolerance ${entry.tolerance})`,
    );
  }
  for (const name of Object.keys(accepted)) {
    if (ran.includes(measureOf(name)) && !found.has(name)) lines.push(`${name}: was not found in this run`);
  }
  return lines;
}

export function readAccepted(file: string): AcceptedRatios {
  return JSON.parse(readFileSync(file, 'utf8')) as AcceptedRatios;
}

/** What was found becomes what is accepted; tolerances stay, and so do the ratios of measures that did not run. */
export function accept(found: ReadonlyMap<string, number>, size: Size, file: string): void {
  const all = existsSync(file) ? readAccepted(file) : { quick: {}, full: {} };
  const merged: Record<string, Accepted> = { ...all[size] };
  for (const [name, value] of found)
    merged[name] = { accepted: Number(value.toPrecision(3)), tolerance: merged[name]?.tolerance ?? firstTolerance(name, size) };
  const inOrder = Object.fromEntries(
    Object.keys(aims)
      .filter((name) => name in merged)
      .map((name) => [name, merged[name]]),
  );
  writeFileSync(file, `${JSON.stringify({ ...all, [size]: inOrder }, null, 2)}\n`);
}
