/**
 * Every route, asked by its example: each request leaves exactly one access record, and where the log can't take that record, no
 * byte of data leaves.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tell } from '../../runner/tell.ts';
import { inTurn } from '../../runner/turn.ts';
import { canary, every, hear, type Prepared, prepared, recordsOf, requestTo } from './every-route.ts';
import type { StoreWorld } from './store-world.ts';

async function records(world: StoreWorld): Promise<number> {
  let count = 0;
  for (const codes of (await recordsOf(world)).values()) count += codes.length;
  return count;
}

describe('a healthy log', () => {
  let one: Prepared;
  beforeAll(async () => {
    one = await prepared();
  });
  afterAll(() => one.world.close());

  // The rotation ends the token of the others: it comes last.
  const inOrder = every.toSorted((a, b) => Number(a.route.endsWith('rotate')) - Number(b.route.endsWith('rotate')));
  test.each(inOrder)('$route answers and leaves one access record', async ({ route, request, admin }) => {
    const own = request.ends ? await prepared() : one;
    try {
      const before = await records(own.world);
      const heard = await hear(own, route, request, admin);
      expect(heard.status, heard.text).toBeLessThan(300);
      if (request.shows) expect(heard.text.replaceAll('_', '-')).toContain(canary);
      if (request.endless) expect(await records(own.world)).toBeGreaterThan(before);
      else await expect.poll(() => records(own.world)).toBe(before + 1 + (request.goesOn ?? 0));
    } finally {
      if (request.ends) await own.world.close();
    }
  });
});

describe('a log that takes no record', () => {
  // Each has a server of its own, since a log that failed stays shut.
  const tried = inTurn(every, 3);
  tell(
    `a log that takes no record, of ${tried.length} of ${every.length} routes (npm run test:whole -- test/doors/http/fail-closed.test.ts)`,
  );
  test.each(tried)('$route shows nothing', async ({ route, request, admin }) => {
    const one = await prepared();
    try {
      one.disk.failing = true;
      const heard = await hear(one, route, request, admin);
      expect([heard.status, heard.text]).toEqual([503, expect.stringContaining('REL_UNAVAILABLE')]);
      // The id is random, and may well have the canary's digits.
      const { correlation_id: id, content, isError, meta, ...said } = refusalIn(heard.text);
      // What tools answer with besides.
      expect([content, meta].map((part) => JSON.stringify(part ?? '')).join('')).not.toContain('CANARY');
      expect(isError).toBe(route === 'POST /mcp/tools/call' ? true : undefined);
      expect(id).toEqual(expect.any(String));
      const members = route === 'POST /graphql' ? ['code', 'message'] : ['detail', 'instance', 'status', 'title', 'type'];
      expect(Object.keys(said).toSorted()).toEqual(members);
      expect(JSON.stringify(said)).not.toContain('4711');
      // Nor does the next one, when the disk is well again: a log that failed stays shut.
      one.disk.failing = false;
      const again = await hear(one, 'POST /query', requestTo('POST /query'), false);
      expect([again.status, again.text.includes(canary)]).toEqual([503, false]);
    } finally {
      one.disk.failing = false;
      await one.world.close().catch(() => undefined);
    }
  });
});

/** Members of a problem record, or of the one error that GraphQL has in its place. */
function refusalIn(text: string): Record<string, unknown> {
  const { errors, ...record } = JSON.parse(text) as { errors?: Record<string, unknown>[] };
  if (errors === undefined) return record;
  const { extensions, ...error } = errors[0]!;
  return { ...error, ...(extensions as object) };
}
