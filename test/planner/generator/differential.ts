/** One statement put to the store and to SQLite. */
import { ServiceError } from '../../../src/errors.ts';
import type { Cell } from '../../../src/log/values/value.ts';
import { Planner } from '../../../src/planner/planner.ts';
import type { Answer } from '../../../src/planner/planner-contract.ts';
import { analyst, rowsOf, type TestStore } from '../../harness.ts';
import { featuresOf } from './features.ts';
import { planShape } from './plan-shape.ts';
import { ourText, sqliteText } from './render.ts';
import { shrunk } from './shrink.ts';
import { Sqlite } from './sqlite.ts';
import { type Features, StatementGenerator } from './statements.ts';
import { type QueryNode, totallyOrdered } from './tree.ts';
import { openWorld, shownCell, smallWorld, type World, worldOf, type WorldShape } from './world.ts';

export interface Mismatch {
  readonly world: number;
  readonly index: number;
  /** What differs, in one line: equal lines are one bug. */
  readonly what: string;
  readonly ours: string;
  readonly theirs: string;
  readonly answers: string;
}

export interface DifferentialReport {
  statements: number;
  /** Statements that SQLite did not answer in time. */
  unanswered: number;
  readonly shapes: Set<string>;
  readonly features: Map<string, number>;
  readonly mismatches: Mismatch[];
  rowsCompared: number;
}

export interface DifferentialOptions {
  readonly seed: number;
  readonly statements: number;
  readonly features: Features;
  /** Statements of one world: making one costs as much as two dozen statements. */
  readonly perWorld?: number;
  /** Features of statements: where one of them has not come, up to four times as many statements are put. */
  readonly expected?: readonly string[];
  readonly stopAfter?: number;
}

const worldsPerSeed = 1_000_003;
/** Rows that operators exchange at once: small ones put the seams of batches everywhere. */
const blockSizes = [8_192, 8_192, 1, 3, 7];
const shapes: readonly WorldShape[] = [smallWorld, smallWorld, smallWorld, { tables: [2, 3], rows: [40, 90] }];

export async function differential(options: DifferentialOptions): Promise<DifferentialReport> {
  const report = emptyReport();
  const perWorld = options.perWorld ?? 500;
  const goesOn = (): boolean =>
    report.statements < options.statements ||
    (report.statements < 4 * options.statements && options.expected?.some((feature) => !report.features.has(feature)) === true);
  const sqlite = new Sqlite();
  try {
    for (let number = 0; goesOn(); number++) {
      const bench = await Bench.open(options.seed * worldsPerSeed + number, sqlite);
      try {
        for (let index = 0; index < perWorld && goesOn(); index++) {
          report.statements++;
          const query = new StatementGenerator(bench.world, index, options.features).statement();
          for (const feature of featuresOf(query)) report.features.set(feature, (report.features.get(feature) ?? 0) + 1);
          await bench.check(query, index, report);
          if (report.mismatches.length >= (options.stopAfter ?? 10)) return report;
        }
      } finally {
        await bench.close();
      }
    }
    return report;
  } finally {
    await sqlite.end();
  }
}

/** The statement that a mismatch named, put again: its world's number tells how it was asked. */
export async function again(world: number, index: number, features: Features): Promise<DifferentialReport> {
  const report = emptyReport();
  const sqlite = new Sqlite();
  const bench = await Bench.open(world, sqlite);
  report.statements = 1;
  await bench.check(new StatementGenerator(bench.world, index, features).statement(), index, report);
  await bench.close();
  await sqlite.end();
  return report;
}

const emptyReport = (): DifferentialReport => ({
  statements: 0,
  unanswered: 0,
  shapes: new Set(),
  features: new Map(),
  mismatches: [],
  rowsCompared: 0,
});

/** Both engines over one world. */
export class Bench {
  readonly world: World;
  readonly store: TestStore;
  readonly #sqlite: Sqlite;
  readonly #planner: Planner;

  private constructor(world: World, store: TestStore, sqlite: Sqlite, planner: Planner) {
    this.world = world;
    this.store = store;
    this.#sqlite = sqlite;
    this.#planner = planner;
  }

  /** The number of a world tells its shape, and how many rows operators exchange at once. */
  static async open(seed: number, sqlite: Sqlite): Promise<Bench> {
    const number = seed % worldsPerSeed;
    const world = worldOf(seed, shapes[number % shapes.length]!);
    const store = await openWorld(world);
    const planner = new Planner({ clock: store.clock, limits: { blockRows: blockSizes[number % blockSizes.length]! } });
    await sqlite.open(world, store);
    return new Bench(world, store, sqlite, planner);
  }

  async close(): Promise<void> {
    await this.store.close();
  }

  async check(query: QueryNode, index: number, report: DifferentialReport): Promise<void> {
    const found = await this.#compare(query, report);
    if (found === null) return;
    const smallest = await shrunk(query, async (smaller) => (await this.#compare(smaller))?.what === found.what);
    const { what, answers } = (await this.#compare(smallest)) ?? found;
    report.mismatches.push({
      world: this.world.seed,
      index,
      what,
      ours: ourText(smallest),
      theirs: sqliteText(smallest, this.store.clock.wallNs),
      answers,
    });
  }

  /** What differs; null where nothing does. What SQLite refuses makes no sense and differs in nothing, as what it can't answer. */
  async #compare(query: QueryNode, report?: DifferentialReport): Promise<{ what: string; answers: string } | null> {
    let theirs: Cell[][] | null;
    try {
      theirs = await this.#sqlite.ask(sqliteText(query, this.store.clock.wallNs));
    } catch (error) {
      if (report) return { what: `the generator made no SQL: ${String(error)}`, answers: '' };
      return null;
    }
    if (theirs === null) {
      if (report) report.unanswered++;
      return null;
    }
    let answer: Answer;
    try {
      answer = await this.#ask(ourText(query));
      // A plan is bound again to be shown: one in a few tells enough.
      if (report && report.statements % 4 === 0)
        report.shapes.add(planShape((await this.#ask(`EXPLAIN ${ourText(query)}`)).plan!));
    } catch (error) {
      // Random joins may come to more rows than any answer may have: that is what the cap is for.
      if (error instanceof ServiceError && error.kind === 'cap_exceeded') return null;
      if (error instanceof ServiceError)
        return { what: `refused: ${error.code} ${generic(error.message)}`, answers: error.message };
      return { what: `broke: ${generic(String(error))}`, answers: error instanceof Error ? (error.stack ?? '') : '' };
    }
    const types = answer.columns.map(({ type }) => type);
    const line = (cells: readonly Cell[]): string => cells.map((cell, i) => shownCell(cell, types[i] ?? 'string')).join(' | ');
    const our = rowsOf(answer).map((row) => line(Object.values(row)));
    const their = theirs.map(line);
    if (report) report.rowsCompared += our.length;
    if (!totallyOrdered(query)) {
      our.sort();
      their.sort();
    }
    if (our.length === their.length && our.every((each, i) => each === their[i])) return null;
    return { what: 'rows differ', answers: `ours   ${preview(our, their)}\ntheirs ${preview(their, our)}` };
  }

  #ask(sql: string): Promise<Answer> {
    return this.store.invoke(analyst, 'query', (invocation) => this.#planner.query(invocation, { sql, dialect: 'wide' }));
  }
}

/** Places and names taken out. */
function generic(message: string): string {
  return message.replaceAll(/\d+/g, '#').replaceAll(/"[^"]*"/g, '""');
}

/** The rows that the other side does not have, then those of both. */
function preview(rows: readonly string[], others: readonly string[]): string {
  const left = new Map<string, number>();
  for (const row of others) left.set(row, (left.get(row) ?? 0) + 1);
  const own = rows.filter((row) => {
    const count = left.get(row) ?? 0;
    left.set(row, count - 1);
    return count <= 0;
  });
  return `${rows.length} rows, of which only here: ${own.slice(0, 5).join(' ; ') || 'none (other order)'}`;
}
