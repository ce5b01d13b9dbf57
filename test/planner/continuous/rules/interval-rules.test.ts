/** Rules at intervals by themselves: which is judged in which turn of the event loop, however many there are, and whose. */
import { expect, test } from 'vitest';
import type { Clock } from '../../../../src/clock.ts';
import { tenantlessCaller } from '../../../../src/governance/caller.ts';
import type { GateContract } from '../../../../src/governance/gate-contract.ts';
import { VectorBuilder } from '../../../../src/log/values/vector-builder.ts';
import { smallAnswer } from '../../../../src/planner/execution/small-answer.ts';
import type { PlannerContract } from '../../../../src/planner/planner-contract.ts';
import { IntervalRules } from '../../../../src/planner/continuous/rules/interval-rules.ts';
import type { RuleVersion } from '../../../../src/projections/rules/rule.ts';
import type { Command } from '../../../../src/projections/command.ts';

const nsPerSec = 1_000_000_000n;

/** Rules over a store that has one row, and a clock that each look puts forward. */
class RuleWorld {
  now = 1_000n * nsPerSec;
  lookMs = 0;
  /** Rules read, and rules judged, by turn. */
  readonly turns: { read: number; readonly judged: string[] }[] = [{ read: 0, judged: [] }];
  readonly submitted: Command[] = [];
  /** Answers whose rows are erased before an alert is raised on them. */
  erasedAnswers = 0;
  onJudged: (name: string) => void = () => undefined;
  readonly rules: IntervalRules;
  readonly #versions: RuleVersion[] = [];
  #ms = 0;

  constructor() {
    const clock: Clock = {
      now: () => this.now,
      monotonicMs: () => (this.#ms += this.lookMs),
      sleep: () => Promise.resolve(),
    };
    const invocation = {
      describe: () => undefined,
      snapshot: () => ({ catalog: { type: () => undefined } }),
      submit: async (command: Command) => void this.submitted.push(command),
    };
    const versions = this.#versions;
    const turns = this.turns;
    const countRead = (): void => void turns.at(-1)!.read++;
    this.rules = new IntervalRules({
      gate: {
        invoke: async (_caller: unknown, _request: unknown, run: (of: unknown) => Promise<unknown>) => run(invocation),
      } as unknown as GateContract,
      planner: { query: async (_, { sql }) => this.#answer(sql!) } as PlannerContract,
      clock,
      ids: { next: () => 'run' } as never,
      rules: {
        get epoch() {
          return versions.length;
        },
        *listJudged() {
          for (const version of versions) {
            countRead();
            yield version;
          }
        },
      },
      judgedUpTo: () => undefined,
      beginning: () => 0n,
      absentCaller: ({ principal, path }) => ({ ...tenantlessCaller(principal, 'none', 'internal'), path }),
      lookups: { keys: () => undefined } as never,
      yieldTurn: async () => void turns.push({ read: 0, judged: [] }),
    });
  }

  get judged(): readonly string[] {
    return this.turns.flatMap(({ judged }) => judged);
  }

  make(name: string, owner: string, intervalSecs = 60): void {
    this.#versions.push({
      until: null,
      record: {
        id: name,
        version: 1,
        definition: {
          kind: 'detection',
          name,
          language: 'sql',
          condition: `SELECT '${name}' AS rule, COUNT(*) FROM Login`,
          object_type: null,
          severity: 'low',
          enabled: true,
          dedupe_by: [],
          window_secs: 1,
          interval_secs: intervalSecs,
          purpose: null,
        },
        author: { principal: 'ann', credential: 'none', token: null },
        owner,
        branch: 'main',
        position: this.#versions.length,
        registered: this.#versions.length,
        time: this.now,
      },
    });
  }

  #answer(sql: string) {
    const name = /'(.*)'/.exec(sql)![1]!;
    this.turns.at(-1)!.judged.push(name);
    this.onJudged(name);
    const builder = new VectorBuilder('string', 1);
    builder.append(name);
    const batch = { columns: [builder.build()], selection: null, first: 0, count: 1 };
    const isErased = this.erasedAnswers-- > 0;
    const facts = { asOfSystem: this.now, costUnits: 0, processingTimeMs: 0 };
    return {
      ...smallAnswer([{ name: 'rule', type: 'string' }], [], facts),
      batches: [batch],
      rowCount: 1,
      overtaken: () => isErased,
    };
  }
}

test('tenants take turns, and of each the rule that is due the longest is judged first', async () => {
  const world = new RuleWorld();
  for (const name of ['a1', 'a2', 'a3']) world.make(name, 'acme');
  world.now += nsPerSec;
  for (const name of ['g1', 'g2']) world.make(name, 'globex/lab');
  world.make('w1', 'wayne');
  expect(await world.rules.round()).toBe(1_060n * nsPerSec);
  expect(world.judged).toEqual(['a1', 'g1', 'w1', 'a2', 'g2', 'a3']);
  expect(await world.rules.round()).toBe(1_060n * nsPerSec);
  world.now = 1_060n * nsPerSec;
  expect(await world.rules.round()).toBe(1_061n * nsPerSec);
  expect(world.judged.slice(6)).toEqual(['a1', 'a2', 'a3']);
});

test('a rule that comes while those of another tenant are judged waits for one of them', async () => {
  const world = new RuleWorld();
  for (let i = 0; i < 100; i++) world.make(`a${i}`, 'acme');
  world.onJudged = (name) => {
    if (name === 'a10') world.make('late', 'globex');
  };
  await world.rules.round();
  expect(world.judged.indexOf('late')).toBeLessThanOrEqual(world.judged.indexOf('a10') + 2);
  expect(world.judged).toHaveLength(101);
});

test('a turn of the event loop judges one rule, and reads no more of them than a slice takes', async () => {
  const world = new RuleWorld();
  for (let i = 0; i < 500; i++) world.make(`r${i}`, `tenant ${i % 7}`);
  world.lookMs = 0.2;
  await world.rules.round();
  expect(world.judged).toHaveLength(500);
  expect(Math.max(...world.turns.map(({ judged }) => judged.length))).toBe(1);
  expect(Math.max(...world.turns.map(({ read }) => read))).toBeLessThan(10);
});

test('nothing is raised on rows that were erased since they were read: the rule is judged again', async () => {
  const world = new RuleWorld();
  world.erasedAnswers = 1;
  world.make('once', 'acme');
  await world.rules.round();
  expect(world.judged).toEqual(['once', 'once']);
  expect(world.submitted).toHaveLength(1);
});
