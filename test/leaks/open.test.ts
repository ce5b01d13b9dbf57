/** A bounded share of the leak matrix, where nothing is governed; `npm run leaks` asks all of it. */
import { expect, test } from 'vitest';
import { EventStream } from '../doors/http/event-stream.ts';
import { type Difference, differences, together } from './differences.ts';
import { Matrix, named } from './matrix.ts';
import { openStage } from './stage.ts';

test('where nothing is governed, worlds that differ in what others hold answer alike', async () => {
  const matrix = new Matrix();
  await matrix.compare(
    'open',
    together(differences.filter(({ governed }) => governed !== true))[0]!,
    named('a sibling that starts alike', 'another tenant', 'a made-up token'),
  );
  expect(matrix.reds).toEqual([]);
});

test('what an adversary may see makes cells red: of answers, counts, plans and files', async () => {
  const seen: Difference = {
    name: 'a row of one’s own',
    hides: 'rows of the victim',
    run: async (stage, side) => {
      const who = stage.canaries.text('rows of the victim', 'a row that is shown');
      if (side === 'first') await stage.put('Deal', 'globex', 'globex', [{ id: 'x1', who, amount: 5, note: 'open' }]);
    },
  };
  const matrix = new Matrix();
  const only = new Set([
    'point of a hidden key',
    'count',
    'facets',
    'estimated hits',
    'plan of a scan',
    'a standing query',
    'writes by SQL',
    'the object door',
    'the key-value door',
    'the document door',
    'grouping sets, lateral queries and other shapes of Postgres',
    'GET /audit/count',
  ]);
  await matrix.compare('open', [seen], { ...named('another tenant'), only, enough: 1_000 });
  const cells = matrix.reds.map(({ cell }) => cell).join('\n');
  for (const name of only) expect(cells).toContain(`another tenant × ${name} × `);
  expect(matrix.reds.some(({ why }) => why.includes('a row that is shown'))).toBe(true);
});

test('a token that is revoked while its stream is open is told nothing more', async () => {
  const stage = await openStage('first', 'open');
  await stage.mint('leaver', { tenant_id: 'globex', principal: 'leaver' });
  await stage.lab.tick();
  const query = new URLSearchParams({ sql: 'SELECT id FROM Deal', purpose: 'test' }).toString();
  const { authorization } = stage.headers('leaver') as { authorization: string };
  const stream = await new EventStream(stage.lab.door.port, `/watch/stream?${query}`, { authorization }).opened();
  await stage.put('Deal', 'globex', 'globex', [{ id: 'before', note: 'open' }]);
  await stage.lab.pass(1_000);
  await stream.until((events) => events.some(({ data }) => data.includes('"before"')));
  await stage.admin('DELETE', `/admin/tokens/${stage.ids.get('token of leaver')}`);
  await stage.put('Deal', 'globex', 'globex', [{ id: 'after', note: 'open' }]);
  await stage.lab.pass(1_000);
  await stream.untilEnded();
  expect(stream.events.at(-1)).toMatchObject({ event: 'error', data: expect.stringContaining('REL_UNAUTHENTICATED') });
  expect(JSON.stringify(stream.events)).not.toContain('after');
  await stage.close();
});
