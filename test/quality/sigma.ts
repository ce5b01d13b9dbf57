/** Rules of `fixtures/sigma` and events for each of them: how many are accepted, fire where they must, and where they must not. */
import { readFileSync } from 'node:fs';
import { parseSigma, splitDocuments } from '../../src/planner/continuous/sigma/parse-rules.ts';
import { SigmaMatcher } from '../../src/planner/continuous/sigma/sigma-matcher.ts';
import type { SigmaRule } from '../../src/planner/continuous/sigma/sigma-rule.ts';
import { finishSteps } from '../finish-steps.ts';
import { columnsOf, type Event, placeholders } from '../planner/continuous/sigma/worlds.ts';

export interface SigmaFigures {
  readonly rules: number;
  readonly accepted: number;
  readonly refused: readonly string[];
  readonly fired: number;
  readonly mustFire: number;
  readonly falseFires: number;
  readonly mustNotFire: number;
}

export interface LabelledEvent {
  readonly rule: number;
  readonly fires: boolean;
  readonly event: Event;
}

const folder = new URL('../../fixtures/sigma/', import.meta.url);

export const ruleTexts = (): readonly string[] => [...splitDocuments(readFileSync(new URL('rules.yml', folder), 'utf8'))];

export const labelledEvents = (): readonly LabelledEvent[] =>
  readFileSync(new URL('events.ndjson', folder), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as LabelledEvent);

export function sigmaFigures(): SigmaFigures {
  const parsed = ruleTexts().map((text) => parseSigma(text, placeholders));
  const refused = parsed.flatMap(({ error }) => (error === null ? [] : [`${error.code} ${error.path}: ${error.detail}`]));
  const rules: SigmaRule[] = [];
  const ordinals = new Map<number, number>();
  parsed.forEach(({ document }, i) => {
    if (document?.kind === 'rule') ordinals.set(i, rules.push(document) - 1);
  });
  const matcher = finishSteps(SigmaMatcher.compile(rules));
  const events = labelledEvents();
  const matches = finishSteps(matcher.judge(columnsOf(events.map(({ event }) => event))));
  const hit = (wanted: boolean): number =>
    events.filter(({ rule, fires }, i) => fires === wanted && matches.get(ordinals.get(rule) ?? -1)?.includes(i)).length;
  return {
    rules: parsed.length,
    accepted: rules.length,
    refused,
    fired: hit(true),
    mustFire: events.filter(({ fires }) => fires).length,
    falseFires: hit(false),
    mustNotFire: events.filter(({ fires }) => !fires).length,
  };
}
