/**
 * 3,000 Sigma rules over events of 30 fields: compiled, judged on one core in process, and beside the same conditions as SQL in
 * sql.js. Rules and events are made from one seed; about one event in twenty matches a rule.
 */
import initSqlJs from 'sql.js';
import type { NamedColumn } from '../../src/log/values/columns.ts';
import { VectorBuilder } from '../../src/log/values/vector-builder.ts';
import { SigmaMatcher } from '../../src/planner/continuous/sigma/sigma-matcher.ts';
import { parseSigma } from '../../src/planner/continuous/sigma/parse-rules.ts';
import type { SigmaRule } from '../../src/planner/continuous/sigma/sigma-rule.ts';
import type { BenchContext } from '../context.ts';
import { quotient, summary } from '../report.ts';
import { type Event, type MadeRule, eventNames, eventNumbers, SigmaWorld } from '../sigma-world.ts';

const ruleCount = 3_000;
const blockRows = 2_048;
const blocks = 10;
/** SQL is asked once a rule. */
const sqlEvents = 1_000;
const rounds = 3;

export async function sigma({ report }: BenchContext): Promise<void> {
  const world = new SigmaWorld(7);
  const made = Array.from({ length: ruleCount }, (_, i) => world.rule(i));
  const compiled: number[] = [];
  let matcher: SigmaMatcher | null = null;
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    const rules = made.map(({ yaml }): SigmaRule => {
      const { document, error } = parseSigma(yaml, () => null);
      if (document?.kind !== 'rule') throw new Error(`${error?.path}: ${error?.detail}`);
      return document;
    });
    matcher = finish(SigmaMatcher.compile(rules)).value;
    compiled.push((performance.now() - began) / 1000);
  }
  const events = Array.from({ length: blockRows * blocks }, () => world.event());
  const inputs = Array.from({ length: blocks }, (_, i) => columnsOf(events.slice(i * blockRows, (i + 1) * blockRows)));
  const rates: number[] = [];
  const turns: number[] = [];
  let matches = 0;
  for (let round = 0; round <= rounds; round++) {
    const began = performance.now();
    matches = 0;
    for (const columns of inputs) {
      const { value, longestMs } = finish(matcher!.judge({ columns, selection: null, first: 0, count: blockRows }));
      if (round > 0) turns.push(longestMs);
      for (const rows of value.values()) matches += rows.length;
    }
    if (round > 0) rates.push(events.length / ((performance.now() - began) / 1000));
  }
  const sql = await sqlRate(made, events.slice(0, sqlEvents));
  const same = finish(
    matcher!.judge({ columns: columnsOf(events.slice(0, sqlEvents)), selection: null, first: 0, count: sqlEvents }),
  );
  const ours = [...same.value.values()].reduce((sum, rows) => sum + rows.length, 0);
  if (ours !== sql.matches) throw new Error(`${ours} matches, ${sql.matches} by SQL`);
  const note = `${matches} matches of ${events.length} events, longest turn ${Math.max(...turns).toFixed(1)} ms`;
  report.add({ measure: 'sigma rules compiled', product: 'annals', unit: 's', better: 'smaller', samples: compiled });
  report.add({ measure: 'sigma events', product: 'annals', unit: 'events/s', better: 'larger', samples: rates, note });
  report.add({ measure: 'sigma events', product: 'sql.js', unit: 'events/s', better: 'larger', samples: [sql.rate] });
  report.figure('sigma.compiled', summary(compiled));
  report.figure('sigma.rate', summary(rates));
  report.figure('sigma.sql', quotient(rates, [sql.rate]));
}

async function sqlRate(rules: readonly MadeRule[], events: readonly Event[]): Promise<{ rate: number; matches: number }> {
  const { Database } = await initSqlJs();
  const database = new Database();
  database.create_function('matches', (pattern: string, text: string | null) =>
    text !== null && regexOf(pattern).test(text) ? 1 : 0,
  );
  database.run(`CREATE TABLE events (${eventNames.map((name) => `"${name}"`).join()})`);
  const insert = database.prepare(`INSERT INTO events VALUES (${eventNames.map(() => '?').join()})`);
  for (const event of events) insert.run(eventNames.map((name) => event[name] ?? null));
  const statements = rules.map(({ sql }) => database.prepare(`SELECT count(*) FROM events WHERE ${sql}`));
  const began = performance.now();
  let matches = 0;
  for (const statement of statements) {
    statement.step();
    matches += Number(statement.get()[0]);
    statement.reset();
  }
  const seconds = (performance.now() - began) / 1000;
  database.close();
  return { rate: events.length / seconds, matches };
}

const regexes = new Map<string, RegExp>();
function regexOf(pattern: string): RegExp {
  let regex = regexes.get(pattern);
  if (regex === undefined) regexes.set(pattern, (regex = new RegExp(pattern)));
  return regex;
}

function finish<T>(steps: Generator<undefined, T, void>): { readonly value: T; readonly longestMs: number } {
  let longestMs = 0;
  for (;;) {
    const began = performance.now();
    const step = steps.next();
    longestMs = Math.max(longestMs, performance.now() - began);
    if (step.done) return { value: step.value, longestMs };
  }
}

function columnsOf(events: readonly Event[]): readonly NamedColumn[] {
  return eventNames.map((name) => {
    const type = eventNumbers.includes(name) ? 'integer' : 'string';
    const builder = new VectorBuilder(type, events.length);
    for (const event of events) {
      const value = event[name] ?? null;
      if (value === null) builder.appendNull();
      else if (typeof value === 'number') builder.appendInteger(value);
      else builder.appendString(value);
    }
    return { name, type, vector: builder.build() };
  });
}
