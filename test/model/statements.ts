/** INSERT, UPDATE and DELETE as commands: what a statement comes to is the write that the model makes of what it believes to hold. */
import fc from 'fast-check';
import type { Literal } from '../../src/planner/syntax/statement.ts';
import { apply, type Believed, type Command, count, nameOf, shown } from './believed.ts';
import type { Cells, Sent } from './bitemporal.ts';
import { someBounded, somePath, someBranch, someKey, someKeys } from './commands.ts';
import type { RealStore, Step } from './store.ts';

type Statement =
  | { readonly kind: 'insert'; readonly rows: readonly Sent[] }
  | { readonly kind: 'upsert'; readonly row: Sent }
  | { readonly kind: 'update'; readonly keys: readonly string[]; readonly sent: Sent }
  | { readonly kind: 'delete'; readonly keys: readonly string[] };

interface Placed {
  readonly branch: number;
  readonly path: string | null;
}

export const someStatements = (): fc.Arbitrary<Command>[] => {
  const statement: fc.Arbitrary<Statement> = fc.oneof(
    fc.record({ kind: fc.constant('insert' as const), rows: fc.array(someBounded, { minLength: 1, maxLength: 3 }) }),
    fc.record({
      kind: fc.constant('upsert' as const),
      row: someBounded.map((row) => ({ ...row, validFrom: null, validTo: null })),
    }),
    fc.record({ kind: fc.constant('update' as const), keys: someKeys, sent: someBounded }),
    fc.record({
      kind: fc.constant('update' as const),
      keys: someKeys,
      sent: someBounded.map((row) => ({ ...row, validFrom: null, validTo: null })),
    }),
    fc.record({ kind: fc.constant('delete' as const), keys: fc.uniqueArray(someKey, { minLength: 1, maxLength: 2 }) }),
  );
  const place = fc.record({ branch: someBranch, path: somePath });
  return [place, place, place].map((where) => fc.tuple(where, statement).map(([at, asked]) => new DoStatement(at, asked)));
};

class DoStatement implements Command {
  constructor(
    readonly place: Placed,
    readonly statement: Statement,
  ) {}
  check = (): boolean => true;
  toString = (): string => shown({ ...this.place, ...this.statement });

  async run(believed: Believed, real: RealStore): Promise<void> {
    const { branch: number, path } = this.place;
    count(believed.ran, `${this.statement.kind} by SQL`);
    const branch = nameOf(believed, number);
    const now = await real.instant(path, branch);
    const current = new Map(
      believed.model
        .on(branch)
        .read(path, { system: now, valid: now })
        .filter((version) => version.path === path)
        .map((version) => [version.key, version.cells]),
    );
    const { sql, parameters } = textOf(this.statement);
    const outcome = await real.execute(path, branch, sql, parameters);
    const steps = stepsOf(this.statement, current, now);
    if (steps.length > 0 || outcome.errors.length > 0 || outcome.changed) {
      apply(believed, { kind: 'batch', branch: number, path, steps }, outcome, real.clock.wallNs);
    }
  }
}

/** What the statement writes, of rows that hold `now`, in the order in which they were written. */
function stepsOf(statement: Statement, current: ReadonlyMap<string, Cells>, now: bigint): Step[] {
  switch (statement.kind) {
    case 'insert':
      return [{ kind: 'put', rows: statement.rows, how: { when: 'absent' } }];
    case 'upsert': {
      const { row } = statement;
      const before = current.get(row.key);
      if (before === undefined) return [{ kind: 'put', rows: [row], how: { when: 'absent' } }];
      const cells = { n: row.cells['n'] ?? null, name: before['name'] ?? row.cells['name'] ?? null };
      return [{ kind: 'put', rows: [{ ...row, cells }], how: { patch: true, when: { unchangedSince: now } } }];
    }
    case 'update': {
      const { keys, sent } = statement;
      const rows = [...current].flatMap(([key, before]): Sent[] => {
        const cells = { x: sent.cells['x'] ?? null, name: before['name'] ?? sent.cells['name'] ?? null };
        return keys.includes(key) ? [{ ...sent, key, cells }] : [];
      });
      return rows.length === 0 ? [] : [{ kind: 'put', rows, how: { patch: true, when: { unchangedSince: now } } }];
    }
    case 'delete': {
      const keys = [...current.keys()].filter((key) => statement.keys.includes(key));
      return keys.length === 0 ? [] : [{ kind: 'delete', keys }];
    }
  }
}

function textOf(statement: Statement): { readonly sql: string; readonly parameters: readonly Literal[] } {
  const parameters: Literal[] = [];
  const value = (given: Literal): string => `$${parameters.push(given)}`;
  const list = (given: readonly Literal[]): string => given.map(value).join(', ');
  const names = ['name', 'n', 'x', 'who'];
  const row = ({ key, validFrom, validTo, cells }: Sent): string =>
    `(${list([key, validFrom, validTo, ...names.map((name) => cells[name] ?? null)])})`;
  const head = `INSERT INTO Fact (_pk, valid_from, valid_to, ${names.join(', ')}) VALUES`;
  const sql = ((): string => {
    switch (statement.kind) {
      case 'insert':
        return `${head} ${statement.rows.map(row).join(', ')}`;
      case 'upsert': {
        const set = 'n = EXCLUDED.n, name = COALESCE(Fact.name, EXCLUDED.name)';
        return `${head} ${row(statement.row)} ON CONFLICT DO UPDATE SET ${set}`;
      }
      case 'update': {
        const { validFrom, validTo, cells } = statement.sent;
        const bounds =
          validFrom === null && validTo === null ? '' : `, valid_from = ${value(validFrom)}, valid_to = ${value(validTo)}`;
        const set = `x = ${value(cells['x'] ?? null)}, name = COALESCE(name, ${value(cells['name'] ?? null)})${bounds}`;
        return `UPDATE Fact SET ${set} WHERE _pk IN (${list(statement.keys)})`;
      }
      case 'delete':
        return `DELETE FROM Fact WHERE _pk IN (${list(statement.keys)})`;
    }
  })();
  return { sql, parameters };
}
