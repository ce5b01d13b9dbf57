/**
 * Compiled decisions against the engine's own: rows through columns in every layout, cells, and things that are no rows.
 * A difference names the seed of its world; everything in a world follows from it.
 */
import type { RowCondition } from '../../../src/governance/authorization/grant.ts';
import type { Expr } from '../../../src/governance/authorization/cedar/syntax.ts';
import { operands } from '../../../src/governance/authorization/cedar/syntax.ts';
import { typesOf } from '../../../src/governance/authorization/cedar/compile.ts';
import { PolicySet } from '../../../src/governance/authorization/policy-set.ts';
import { ServiceError } from '../../../src/errors.ts';
import { systemColumns, type ColumnType } from '../../../src/log/values/value.ts';
import { Seeded } from '../../simulation/seeded.ts';
import {
  askerFor,
  blockOf,
  clocks,
  PolicyWriter,
  rowsFor,
  typeNames,
  typeOf,
  type Block,
  type Dictionaries,
  type PolicyText,
  type Row,
} from './generator.ts';
import { cellSubject, Oracle, rowSubject, thingSubject } from './oracle.ts';

export interface Difference {
  readonly seed: number;
  readonly what: string;
}

export interface Report {
  /** (policies, principal, row) decided both ways. */
  triples: number;
  cells: number;
  things: number;
  refused: number;
  readonly differences: Difference[];
  readonly coverage: Map<string, number>;
}

const definitions = new Map(typeNames.map((name) => [name, typeOf(name)]));
const rowsInBlock = 24;
const strictness = ['year', 'last4', 'bucket', 'hash', 'null', 'redact'];

const each = (kind: string, names: string): readonly string[] => names.split(' ').map((name) => `${kind}${name}`);

/** Kinds of occurrence that a run must have met; `coverage` counts each. */
export const expected: readonly string[] = [
  ...each('', 'and or not negate isEmpty attribute has like is if set record in contains containsAll containsAny'),
  ...each('', '== != < <= > >= + - *'),
  ...each('call ', 'datetime duration offset durationSince toDate toTime toMilliseconds toSeconds toMinutes toHours toDays'),
  ...each('variable ', 'principal action resource context'),
  ...each('vector ', 'i32 f64 i64 bool dict text null'),
  ...each('rows ', 'all none condition'),
  ...each('row ', 'allowed denied erring-permit erring-forbid null-cell selected'),
  ...each('mask ', 'always conditional hidden shown'),
  ...each('thing ', 'allowed denied'),
  'clock in a condition',
];

export function differential(options: { readonly seed: number; readonly triples: number }): Report {
  const report: Report = {
    triples: 0,
    cells: 0,
    things: 0,
    refused: 0,
    differences: [],
    coverage: new Map(expected.map((name) => [name, 0])),
  };
  for (let seed = options.seed * 10_000_000; report.triples < options.triples; seed++) runWorld(seed, report);
  return report;
}

export function runWorld(seed: number, report: Report): void {
  const dice = new Seeded(seed);
  const seen = (what: string): void => void report.coverage.set(what, (report.coverage.get(what) ?? 0) + 1);
  const writer = new PolicyWriter(dice);
  const texts = [
    writer.inTurn(seed),
    ...Array.from({ length: 1 + dice.below(4) }, (_, i) => writer.policy(i === 0 ? 'permit' : 'rows')),
    ...Array.from({ length: dice.below(3) }, () => writer.policy('cells')),
  ];
  const policies = new Map(texts.map((text, i) => [`p${i}`, text]));
  const set = readAll(policies, report);
  if (set === null) return;
  for (const { condition } of set.policies) count(condition, seen);
  const engines = Object.fromEntries([...policies].map(([id, { engines: text }]) => [id, text]));
  const oracle = new Oracle(engines);
  const cellOracle = new Oracle({ ...engines, cells: 'permit(principal, action == Action::"readCell", resource);' });
  const dictionaries: Dictionaries = new Map();
  for (let i = 0; i < 2; i++) {
    const type = definitions.get(dice.pick(typeNames))!;
    const asker = askerFor(dice);
    const caller = set.callerPolicies(asker);
    const now = dice.pick(clocks);
    const rows = rowsFor(dice, rowsInBlock);
    const columns = new Map<string, ColumnType>(
      Object.entries(type.properties).map(([name, { type: of }]) => [name, of] as const),
    );
    for (const name of ['_pk', 'tenant_id', 'namespace_path'] as const) columns.set(name, systemColumns[name]);
    const block = blockOf(dice, rows, columns, dictionaries, (kind) => seen(`vector ${kind}`));
    if (block.selection !== null) seen('row selected');
    const differ = (what: string, row: Row | null): void => {
      const shown = JSON.stringify({ row, asker, type: type.name }, (_, cell) => (typeof cell === 'bigint' ? `${cell}` : cell));
      report.differences.push({
        seed,
        what: `${what}\n  ${[...policies.values()].map(({ ours }) => ours).join('\n  ')}\n  ${shown}`,
      });
    };

    const action = dice.pick(['read', 'read', 'read', 'write', 'export'] as const);
    const decision = caller.rows(action, type, now);
    if (decision.residuals.some(({ policy }) => policy.text.includes('context.now'))) seen('clock in a condition');
    seen(decision.rows === null ? 'rows all' : decision.rows === 'none' ? 'rows none' : 'rows condition');
    const passes =
      decision.rows === null ? null : decision.rows === 'none' ? 'none' : testOf(decision.rows, block, typesOf(type));
    rows.forEach((row, k) => {
      const answer = oracle.decide(asker, action, rowSubject(type.name, row), now);
      report.triples++;
      seen(answer.allowed ? 'row allowed' : 'row denied');
      for (const id of answer.errors) seen(engines[id]!.includes('forbid(') ? 'row erring-forbid' : 'row erring-permit');
      if (Object.values(row).includes(undefined)) seen('row null-cell');
      const ours = passes === null || (passes !== 'none' && passes[k] === 1);
      if (ours !== answer.allowed) differ(`${action}: compiled ${ours}, engine ${answer.allowed}`, row);
    });

    const { masks } = caller.masks(type, now);
    const column = dice.pick(['region', 'n', 'at', 'note', 'flag']);
    const mask = masks.get(column);
    if (mask !== undefined) seen(mask.when === null ? 'mask always' : 'mask conditional');
    const hidden = mask === undefined || mask.when === null ? null : testOf(mask.when, block, typesOf(type));
    rows.slice(0, 4).forEach((row, k) => {
      const answer = cellOracle.decide(asker, 'readCell', cellSubject(type.name, column, row), now);
      report.cells++;
      seen(answer.allowed ? 'mask shown' : 'mask hidden');
      const ours = mask !== undefined && (hidden === null || hidden[k] === 1);
      if (ours === answer.allowed) differ(`cell ${column}: compiled ${ours ? 'hidden' : 'shown'}`, row);
      for (const id of answer.allowed ? [] : answer.reasons.filter((reason) => engines[reason]?.includes('forbid('))) {
        const asked = /@mask\("(\w+)/.exec(engines[id]!)?.[1] ?? 'redact';
        if (mask !== undefined && strictnessOf(mask.kind) < strictnessOf(asked))
          differ(`cell ${column}: ${mask.kind} where ${asked} is asked`, row);
      }
    });

    const owner = dice.pick([null, 'acme', 'acme/eu']);
    const [thing, id] = dice.pick([
      ['Type', type.name],
      ['Branch', 'main'],
      ['Store', 'audit'],
    ] as const);
    const ours = caller.decide(action, { type: thing, id, owner }, now);
    const answer = oracle.decide(asker, action, thingSubject(thing, id, owner), now);
    report.things++;
    seen(answer.allowed ? 'thing allowed' : 'thing denied');
    if (ours.allowed !== answer.allowed) differ(`${action} ${thing}::${id}: compiled ${ours.allowed}`, null);
    // Whatever determines it is named: the engine names forbids that are true, or permits; we name forbids that err as well.
    const named = new Set(ours.because);
    for (const reason of answer.reasons)
      if (!named.has(reason) && !answer.allowed === engines[reason]!.includes('forbid(')) differ(`${reason} is not named`, null);
  }
}

/** Null where nothing is left of them: what is refused is left out, and counted. */
function readAll(policies: Map<string, PolicyText>, report: Report): PolicySet | null {
  const read = (ids: readonly string[]): PolicySet => new PolicySet(new Map(ids.map((id) => [id, policies.get(id)!.ours])));
  try {
    return read([...policies.keys()]);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    report.refused++;
    for (const id of policies.keys()) if (error.message.startsWith(`policy ${id},`)) policies.delete(id);
    return policies.size === 0 || report.refused > 1000 ? null : readAll(policies, report);
  }
}

function strictnessOf(kind: string): number {
  return Math.max(1, strictness.indexOf(kind));
}

function testOf(
  condition: RowCondition,
  { vectors, selection, first }: Block,
  typeOfColumn: (name: string) => ColumnType,
): Uint8Array {
  const out = new Uint8Array(rowsInBlock).fill(7);
  for (const column of condition.columns) typeOfColumn(column);
  const own = condition.columns.map((column) => vectors.get(column)!);
  condition.test(own, selection, selection === null ? first : 0, rowsInBlock, out);
  return out;
}

function count(expr: Expr, seen: (what: string) => void): void {
  if (expr.op === 'call') seen(`call ${expr.name}`);
  else if (expr.op === 'variable') seen(`variable ${expr.name}`);
  else if (expr.op !== 'value') seen(expr.op);
  for (const part of operands(expr)) count(part, seen);
}
