/** A segment that grows: what is indexed of it, and what is not yet, give one answer at every time. */
import { expect, test } from 'vitest';
import { inlineWorker } from '../../../src/log/threads/workers.ts';
import { analyst, rowsOf, TestStore } from '../../harness.ts';

test('rows are found as they come, by the index of the first many and by chunks of the rest', async () => {
  const store = await TestStore.open('2024-01-01', {}, { startKept: inlineWorker });
  await store.register('Doc', { id: 'string', title: 'string' }, 'id');
  const written: { id: string; title: string | null }[] = [];
  const put = async (count: number): Promise<void> => {
    const rows = Array.from({ length: count }, (_, k) => {
      const i = written.length + k;
      return {
        id: `d${String(i).padStart(6, '0')}`,
        title: i % 11 === 0 ? null : `word${i % 7} many ${i % 1_000 === 3 ? 'rareOne' : ''}`,
      };
    });
    written.push(...rows);
    await store.put('Doc', rows, analyst);
  };
  const ids = async (query: string): Promise<unknown[]> =>
    rowsOf(await store.answer(`SELECT id FROM Doc WHERE MATCH(title, '${query}')`)).map(({ id }) => id);
  const expected = (text: string): unknown[] => written.filter(({ title }) => title?.includes(text)).map(({ id }) => id);
  const { indexes } = store.service.store.projections.rows;
  for (const count of [700, 9_000, 300, 8_400]) {
    await put(count);
    for (let round = 0; round < 2; round++) {
      expect(await ids('rare')).toEqual(expected('rareOne'));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  const [head] = store.service.store.projections.rows.table(null, 'Doc')!.segments;
  expect(indexes.coveredRows(head!, 'title')).toBeGreaterThan(8_192);
  const best = await store.answer("SELECT id, _score FROM Doc WHERE MATCH(title, 'rare many') ORDER BY _score DESC LIMIT 5");
  expect(best.estimatedTotalHits).toBe(expected('many').length);
  expect(rowsOf(best).map(({ id }) => id)).toEqual(expected('rareOne').slice(0, 5));

  // Bits of a condition are of the whole segment, its index is of the first many rows.
  const when = 'permit(principal, action, resource is Doc) when { resource.id like "*3" };';
  await store.service.gate.invoke(
    { ...analyst, credential: 'admin' },
    { action: 'administer', purpose: 'test', correlationId: 'c' },
    (i) => i.submit({ kind: 'put-policy', id: 'p', text: when }),
  );
  for (let round = 0; round < 3; round++) {
    const shown = await store.answer("SELECT id, _score FROM Doc WHERE MATCH(title, 'rare many') ORDER BY _score DESC LIMIT 30");
    const ends = written.filter(({ id, title }) => id.endsWith('3') && title !== null);
    const first = ends.filter(({ title }) => title?.includes('rareOne'));
    const others = ends.filter(({ title }) => !title?.includes('rareOne'));
    expect(rowsOf(shown).map(({ id }) => id)).toEqual([...first, ...others].slice(0, 30).map(({ id }) => id));
    expect(shown.estimatedTotalHits).toBe(ends.length);
  }
  await store.close();
});
