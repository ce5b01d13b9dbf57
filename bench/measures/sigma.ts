/**
 * 3,000 Sigma rules over events of 30 fields: compiled, judged on one core in process, and beside the same conditions as SQL in
 * sql.js. Rules and events are made from one seed; about one event in twenty matches a rule.
 */
import initSqlJs from 'sql.js';
import type { NamedColumn } from '../../src/log/values/columns.ts';
import { VectorBuilder } from '../../src/log/values/vector-builder.ts';
import { SigmaMatcher } from '../../src/planner/standing/sigma/matcher.ts';
import { parseSigma } from '../../src/planner/standing/sigma/parse.ts';
import type { SigmaRule } from '../../src/planner/standing/sigma/rule.ts';
import type { BenchContext } from '../context.ts';
import { quotient, summary } from '../report.ts';

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

interface MadeRule {
  readonly yaml: string;
  readonly sql: string;
}

type Event = Readonly<Record<string, string | number | null>>;

async function sqlRate(rules: readonly MadeRule[], events: readonly Event[]): Promise<{ rate: number; matches: number }> {
  const { Database } = await initSqlJs();
  const database = new Database();
  database.create_function('matches', (pattern: string, text: string | null) =>
    text !== null && regexOf(pattern).test(text) ? 1 : 0,
  );
  database.run(`CREATE TABLE events (${names.map((name) => `"${name}"`).join()})`);
  const insert = database.prepare(`INSERT INTO events VALUES (${names.map(() => '?').join()})`);
  for (const event of events) insert.run(names.map((name) => event[name] ?? null));
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

const paths = ['Image', 'ParentImage', 'TargetFilename', 'ImageLoaded', 'CurrentDirectory'];
const lines = ['CommandLine', 'ParentCommandLine', 'TargetObject', 'Details', 'ScriptBlockText'];
const words = [
  'User',
  'LogonId',
  'IntegrityLevel',
  'Company',
  'Product',
  'Description',
  'OriginalFileName',
  'Computer',
  'Channel',
];
const numbers = ['EventID', 'ProcessId', 'ParentProcessId', 'LogonType', 'DestinationPort', 'SourcePort'];
const others = ['DestinationIp', 'Hashes', 'Provider_Name', 'UtcTime', 'RuleName'];
const names = [...paths, ...lines, ...words, ...numbers, ...others];

/** Rules and events over one vocabulary, so that literals of rules are in many events and whole rules match few. */
class SigmaWorld {
  #state: number;
  readonly #words: readonly string[];

  constructor(seed: number) {
    this.#state = seed;
    const syllables =
      'win sys32 cmd net power shell exec load inject crypt hash dump user admin host svc proxy task reg key tmp data'.split(' ');
    this.#words = Array.from({ length: 1_500 }, () => `${this.#pick(syllables)}${this.#pick(syllables)}${this.#below(40)}`);
  }

  rule(ordinal: number): MadeRule {
    const [path, line, word] = [this.#pick(paths), this.#pick(lines), this.#pick(words)];
    const [a, b, c, d] = [this.#word(), this.#word(), this.#word(), this.#word()];
    const head = `title: rule ${ordinal}\nlogsource: {product: windows}\ndetection:\n`;
    switch (ordinal % 10) {
      case 0: {
        const number = 1 + this.#below(40);
        return {
          yaml: `${head}  s:\n    EventID: ${number}\n    ${word}: '${a}'\n    ${line}|contains: ['-${b}', '-${c}']\n  condition: s`,
          sql: `EventID = ${number} AND "${word}" LIKE '${a}' AND ("${line}" LIKE '%-${b}%' OR "${line}" LIKE '%-${c}%')`,
        };
      }
      case 1:
        return {
          yaml: `${head}  s:\n    ${path}|endswith: '\\${a}.exe'\n    ${line}|re: '-${b}\\s+[a-z]+[0-9]{2,}'\n  condition: s`,
          sql: `"${path}" LIKE '%\\${a}.exe' AND matches('-${b}\\s+[a-z]+[0-9]{2,}', "${line}")`,
        };
      case 2:
        return {
          yaml: `${head}  s:\n    ${line}|contains|all: [' -${a}', ' -${b}']\n  f:\n    ParentImage|startswith: 'C:\\${c}\\'\n  g:\n    ${word}: null\n  condition: s and not 1 of f and not g`,
          sql: `"${line}" LIKE '% -${a}%' AND "${line}" LIKE '% -${b}%' AND NOT ifnull("ParentImage" LIKE 'C:\\${c}\\%', 0) AND NOT "${word}" IS NULL`,
        };
      case 3: {
        const port = 60_000 + this.#below(5_000);
        return {
          yaml: `${head}  s:\n    DestinationPort|gte: ${port}\n    ${path}|contains: '\\${a}\\'\n    ${word}|startswith: '${b}'\n  condition: s`,
          sql: `DestinationPort >= ${port} AND "${path}" LIKE '%\\${a}\\%' AND "${word}" LIKE '${b}%'`,
        };
      }
      default: {
        const list = [a, b, c].map((each) => `'\\${each}.exe'`).join(', ');
        const like = [a, b, c].map((each) => `"${path}" LIKE '%\\${each}.exe'`).join(' OR ');
        return {
          yaml: `${head}  i:\n    - ${path}|endswith: [${list}]\n    - OriginalFileName: '${a}.exe'\n  l:\n    ${line}|contains: ['${d}.dll', '/${b} ', '-${c}']\n  condition: all of them`,
          sql: `(${like} OR "OriginalFileName" LIKE '${a}.exe') AND ("${line}" LIKE '%${d}.dll%' OR "${line}" LIKE '%/${b} %' OR "${line}" LIKE '%-${c}%')`,
        };
      }
    }
  }

  event(): Event {
    const event: Record<string, string | number | null> = {};
    for (const name of paths) event[name] = `C:\\${this.#word()}\\${this.#word()}\\${this.#word()}.exe`;
    for (const name of lines) {
      event[name] = Array.from(
        { length: 6 },
        () => this.#pick(['', '-', '/', 'C:\\']) + this.#word() + this.#pick(['', '.dll', '.exe', '=1']),
      ).join(' ');
    }
    for (const name of words)
      event[name] = this.#below(8) === 0 ? null : name === 'OriginalFileName' ? `${this.#word()}.exe` : this.#word();
    for (const name of numbers) event[name] = this.#below(name === 'EventID' ? 40 : 65_536);
    event['DestinationIp'] = `10.${this.#below(256)}.${this.#below(256)}.${this.#below(256)}`;
    event['Hashes'] = `MD5=${this.#hex(32)},SHA256=${this.#hex(64)}`;
    event['Provider_Name'] = 'Microsoft-Windows-Sysmon';
    event['UtcTime'] = `2024-05-01 10:00:${this.#below(60)}`;
    event['RuleName'] = '-';
    return event;
  }

  #hex(length: number): string {
    return Array.from({ length }, () => this.#below(16).toString(16)).join('');
  }

  /** Some words are in many events. */
  #word(): string {
    return this.#words[this.#below(3) === 0 ? this.#below(20) : this.#below(this.#words.length)]!;
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#below(list.length)]!;
  }

  #below(bound: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 4_294_967_296) * bound);
  }
}

function columnsOf(events: readonly Event[]): readonly NamedColumn[] {
  return names.map((name) => {
    const type = numbers.includes(name) ? 'integer' : 'string';
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
