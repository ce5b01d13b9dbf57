/** A run of oracles over random worlds. */
import { checked, type Oracle, OracleBench, type Probe } from './oracle-bench.ts';
import { oraclesFor } from './oracles.ts';
import { ourExpression, ourText } from './render.ts';
import { shrunk } from './shrink.ts';
import { type Features, StatementGenerator } from './statements.ts';
import { smallWorld, worldOf } from './world.ts';

export interface Finding {
  readonly oracle: string;
  readonly world: number;
  readonly index: number;
  readonly what: string;
  readonly query: string;
  readonly predicate: string | null;
  readonly detail: string;
}

export interface OracleReport {
  checks: number;
  statements: number;
  /** Checks that an answer beyond the caps ended. */
  capped: number;
  readonly byOracle: Map<string, number>;
  readonly shapes: Set<string>;
  readonly findings: Finding[];
}

export interface OracleOptions {
  readonly seed: number;
  readonly checks: number;
  readonly features: Features;
  readonly stopAfter?: number;
}

const perWorld = 500;

export async function runOracles(options: OracleOptions): Promise<OracleReport> {
  const report: OracleReport = { checks: 0, statements: 0, capped: 0, byOracle: new Map(), shapes: new Set(), findings: [] };
  const asked = oraclesFor(options.features);
  for (let number = 0; report.checks < options.checks; number++) {
    const bench = await OracleBench.open(worldOf(options.seed * 1_000_003 + number, smallWorld), options.features, report.shapes);
    try {
      for (let index = 0; index < perWorld && report.checks < options.checks; index++) {
        const oracle = asked[index % asked.length]!;
        await checkOne(bench, oracle, index, report);
        if (report.findings.length >= (options.stopAfter ?? 10)) return report;
      }
    } finally {
      report.statements += bench.asked;
      report.capped += bench.capped;
      await bench.close();
    }
  }
  return report;
}

/** The history of a world that was written to goes on from check to check: those before are run again, unseen. */
export async function oracleAgain(world: number, index: number, features: Features): Promise<OracleReport> {
  const report: OracleReport = { checks: 0, statements: 0, capped: 0, byOracle: new Map(), shapes: new Set(), findings: [] };
  const asked = oraclesFor(features);
  const bench = await OracleBench.open(worldOf(world, smallWorld), features, report.shapes);
  for (let i = 0; i < index; i++) {
    const oracle = asked[i % asked.length]!;
    if (oracle.writes)
      await checked(bench, oracle, oracle.make(new StatementGenerator(bench.world, i, features), seedOf(bench, i)));
  }
  await checkOne(bench, asked[index % asked.length]!, index, report);
  await bench.close();
  return report;
}

const seedOf = (bench: OracleBench, index: number): number => (bench.world.seed % 100_003) * 1_000 + index;

async function checkOne(bench: OracleBench, oracle: Oracle, index: number, report: OracleReport): Promise<void> {
  report.checks++;
  report.byOracle.set(oracle.name, (report.byOracle.get(oracle.name) ?? 0) + 1);
  const probe = oracle.make(new StatementGenerator(bench.world, index, bench.features), seedOf(bench, index));
  const found = await checked(bench, oracle, probe);
  if (found === null) return;
  const smallest = await shrunk<Probe>(
    probe,
    async (smaller) => (await checked(bench, oracle, smaller))?.what === found.what,
    300,
  );
  const { what, detail } = (await checked(bench, oracle, smallest)) ?? found;
  report.findings.push({
    oracle: oracle.name,
    world: bench.world.seed,
    index,
    what,
    query: ourText(smallest.query),
    predicate: smallest.predicate && ourExpression(smallest.predicate),
    detail,
  });
}
