/**
 * The same rows under the same policies, however they rest: in one growing segment, in sealed ones, on files under a budget
 * that holds a few columns, packed, restored. Memory that is given back is overwritten, so that a masked text which was kept
 * from it, or a bit that was worked out from it too late, reads nonsense.
 */
import { expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import { analyst, exactJson, type TestStore } from '../harness.ts';
import { layoutNames, openLayout, smallSegments } from '../planner/generator/layouts.ts';
import { worldOf } from '../planner/generator/world.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const kinds = ['redact', 'null', 'hash', 'last4', 'year', 'bucket:3'];

async function install(store: TestStore, texts: readonly string[]): Promise<void> {
  const text = texts.join('\n');
  await store.service.gate.invoke(admin, { action: 'administer', purpose: 'test', correlationId: 'c' }, (invocation) =>
    invocation.submit({ kind: 'put-policy', id: 'p', text }),
  );
}

test.each([1, 2, 3])(
  'world %i',
  async (seed) => {
    const world = worldOf(seed, { tables: [1, 1], rows: [150, 200] });
    const columns = world.tables[0]!.columns.filter(({ pool }) => pool !== null);
    const integers = columns.filter(({ type }) => type === 'integer').map(({ name }) => name);
    const conditions = columns.map(({ name, type }) =>
      type === 'integer'
        ? `resource has ${name} && resource.${name} < 2`
        : type === 'string'
          ? `resource has ${name} && resource.${name} like "*b*"`
          : `resource has ${name}`,
    );
    const permits = conditions.map((condition) => `permit(principal, action, resource) when { ${condition} };`);
    const masks = columns.map(
      ({ name }, i) =>
        `@mask("${kinds[(i + seed) % kinds.length]!}") forbid(principal, action == Action::"readCell", resource == Column::"T1.${name}")` +
        (i % 3 === 0 ? ';' : ` when { ${conditions[(i + 1) % conditions.length]!} };`),
    );
    const select = columns.map(({ name }) => name).join(', ');
    const at = new Date(Number(world.instants[Math.floor(world.instants.length / 2)]! / 1_000_000n)).toISOString();
    const statements = [
      `SELECT ${select} FROM T1`,
      `SELECT ${select} FROM T1 AS OF CURRENT`,
      `SELECT ${select} FROM T1 AS OF SYSTEM TIME '${at}'`,
      `SELECT ${select} FROM T1 WHERE _pk IN ('k1', 'k2', 'k3')`,
      `SELECT COUNT(*) AS a FROM T1 WHERE ${integers[0] ?? '1'} >= 0`,
    ];
    let expected: string | undefined;
    for (const layout of layoutNames) {
      const { store } = await openLayout(layout, world, smallSegments);
      const answers: unknown[] = [];
      for (const policies of [[...permits, ...masks], permits, ['permit(principal, action, resource);', ...masks]]) {
        await install(store, policies);
        for (const _ of ['first', 'again']) for (const sql of statements) answers.push(await store.rows(sql));
      }
      await store.close();
      // Hashes are keyed by the store.
      const said = exactJson(answers).replaceAll(/"h:[0-9a-f]{16}"/g, '"hashed"');
      expected ??= said;
      expect(said, layout).toBe(expected);
    }
    expect(expected!.length).toBeGreaterThan(2_000);
  },
  60_000,
);
