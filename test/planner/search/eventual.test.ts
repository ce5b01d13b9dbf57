/** Searches while texts are being indexed: a strong one waits and says how far that is, an eventual one leaves out rows and says so. */
import { expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import { inlineWorker, type StartWorker } from '../../../src/log/threads/workers.ts';
import type { Answer, QueryOptions } from '../../../src/planner/planner-contract.ts';
import { analyst, rowsOf, TestClock, TestStore } from '../../harness.ts';

const segmentRows = 64;
const at = (path: string): Caller => ({ ...analyst, path, tenant: 'acme' });

/** While it is restless, whoever sleeps has slept at once. */
class RestlessClock extends TestClock {
  isRestless = true;

  override sleep = async (ms: number): Promise<void> => {
    if (this.isRestless) this.steadyMs += ms;
    await new Promise((resolve) => setTimeout(resolve, this.isRestless ? 0 : 2));
  };
}

class World {
  readonly clock = new RestlessClock('2024-01-01');
  store!: TestStore;
  release!: () => void;

  /** Two full stretches of rows of one path; what comes then is of another one too. Nothing is indexed until `release`. */
  async open(): Promise<void> {
    const released = new Promise<void>((resolve) => {
      this.release = () => {
        this.clock.isRestless = false;
        resolve();
      };
    });
    const startKept: StartWorker = (job, data) => {
      const worker = inlineWorker(job, data);
      return { ask: (request) => released.then(() => worker.ask(request)), end: () => worker.end() };
    };
    const settings = { SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
    this.store = await TestStore.open('2024-01-01', settings, {
      startKept,
      clock: this.clock,
      derived: { machineBytes: 1 << 30, segmentRows },
    });
    await this.store.register('Doc', { id: 'string', title: 'string' }, 'id');
    await this.put(0, segmentRows * 2, 'acme/a');
    await this.put(200, 10, 'acme/a');
    await this.put(300, 10, 'acme/b');
  }

  async put(first: number, count: number, path: string): Promise<void> {
    const rows = Array.from({ length: count }, (_, i) => ({
      id: `d${first + i}`,
      title: i % 2 === 0 ? 'harbour' : 'lighthouse',
    }));
    await this.store.put('Doc', rows, at(path));
  }

  ask(condition: string, options: QueryOptions = {}, path = 'acme'): Promise<Answer> {
    const sql = `SELECT id FROM Doc AS OF CURRENT WHERE ${condition} ORDER BY id`;
    return this.store.invoke(at(path), 'query', (invocation) =>
      this.store.service.planner.query(invocation, { sql, ...options }),
    );
  }

  async plan(path = 'acme'): Promise<string> {
    const sql = "EXPLAIN SELECT id FROM Doc AS OF CURRENT WHERE MATCH(title, 'harbour')";
    return (await this.store.answer(sql, at(path))).plan!;
  }
}

const ids = (answer: Answer): unknown[] => rowsOf(answer).map(({ id }) => id);
const eventual = { consistency: 'eventual' } as const;

test('an eventual search yields what is indexed, and says that rows are left out; one behind it has them all', async () => {
  const world = new World();
  await world.open();
  const early = await world.ask("MATCH(title, 'harbour')", eventual);
  expect(ids(early)).toEqual(['d200', 'd202', 'd204', 'd206', 'd208', 'd300', 'd302', 'd304', 'd306', 'd308']);
  expect([early.isApproximate, early.notices, early.estimatedTotalHits]).toEqual([
    true,
    ['the texts of Doc are being indexed: rows that are not indexed yet are left out'],
    10,
  ]);
  expect(await world.plan()).toContain('some rows are not indexed yet: a strong search waits for them');
  expect(await world.plan('acme/b')).toContain('all rows are indexed');
  // Nothing of what this one may see is left out: it is not told that others wait.
  const other = await world.ask("MATCH(title, 'harbour')", eventual, 'acme/b');
  expect([other.rowCount, other.isApproximate, other.notices ?? []]).toEqual([5, undefined, []]);
  world.release();
  const strong = await world.ask("MATCH(title, 'harbour')");
  expect([strong.rowCount, strong.isApproximate, strong.notices ?? []]).toEqual([segmentRows + 10, undefined, []]);
  expect(await world.plan()).toContain('all rows are indexed');
  const late = await world.ask("MATCH(title, 'harbour')", eventual);
  expect([ids(late), late.isApproximate, late.notices ?? []]).toEqual([ids(strong), undefined, []]);
  await world.store.close();
});

test('a strong search says how far it is past its limit, and what it began goes on', async () => {
  const world = new World();
  await world.open();
  await expect(world.ask("MATCH(title, 'harbour')")).rejects.toThrow(
    expect.objectContaining({
      code: 'REL_TIMEOUT',
      message: expect.stringMatching(/indexed for the first time: 0 % of Doc are indexed so far/) as string,
    }) as Error,
  );
  // A row that does not match may be asked for: no row can be left out.
  const any = "NOT MATCH(title, 'harbour')";
  await expect(world.ask(any, eventual)).rejects.toMatchObject({ code: 'REL_TIMEOUT' });
  world.release();
  expect((await world.ask("MATCH(title, 'harbour')")).rowCount).toBe(segmentRows + 10);
  const left = await world.ask(any, eventual);
  expect([left.rowCount, left.isApproximate]).toEqual([segmentRows + 10, undefined]);
  await world.store.close();
});
