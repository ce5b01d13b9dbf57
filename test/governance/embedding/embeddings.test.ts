/** Vectors that a model gives for rows: written beside what is asked, read as of an instant, erased with their rows, and never twice. */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type CommittedEntry, type Embedded, isOpen } from '../../../src/log/entries/entry.ts';
import { isEmbedded } from '../../../src/log/entries/embedded-vectors.ts';
import { RedactionChore } from '../../../src/governance/erasure/redaction-chore.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import type { Command } from '../../../src/projections/command.ts';
import { analyst, rowsOf, TestClock, TestRandom, TestStore } from '../../harness.ts';
import { FakeModel } from './model.ts';

const model = new FakeModel();
const acme = { ...analyst, path: 'acme' };
const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
const columns = {
  id: 'string',
  who: { ...plain, type: 'string', subject: true },
  text: 'string',
  secret: { ...plain, type: 'string', masked: true },
  _emb_own: { ...plain, type: 'vector', dims: 3 },
} as const;

let disk: MemoryDisk;
let clock: TestClock;
let starts = 0;
let store: TestStore;

beforeAll(() => model.open());
afterAll(() => model.close());
beforeEach(() => {
  disk = new MemoryDisk();
  clock = new TestClock('2024-01-01');
  model.isDown = false;
});

async function open(settings: Record<string, string> = {}): Promise<void> {
  const all = { SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data', ...model.settings, ...settings };
  const parts = { disk, clock, derived: { machineBytes: 1 << 30, segmentRows: 64 }, random: new TestRandom(++starts * 7_919) };
  store = await TestStore.open('2024-01-01', all, parts);
}

async function fill(): Promise<void> {
  await open();
  await store.register('Doc', columns, 'id');
  await store.put(
    'Doc',
    [
      { id: 'd1', who: null, text: 'a puppy sleeps', secret: 'ship' },
      { id: 'd2', who: 'alice', text: 'the loaf is warm', secret: null },
      { id: 'd3', who: 'bob', text: 'a vessel sails', secret: null },
      { id: 'd4', who: null, text: 'nothing of it', secret: null, _emb_own: [0.1, 1, 0.1] },
      { id: 'd5', who: null, text: null, secret: 'bread' },
    ],
    acme,
  );
  tick();
}

function tick(): void {
  clock.wallNs += 1_000_000_000n;
}

async function ask(text: string, rest = 'LIMIT 1'): Promise<{ ids: string; notices: readonly string[] }> {
  const answer = await store.answer(`HYBRID_SEARCH FROM Doc QUERY '${text}' ${rest}`, acme);
  return {
    ids: rowsOf(answer)
      .map((row) => String(row['id']))
      .join(' '),
    notices: answer.notices ?? [],
  };
}

/** Asks once, and lets the rows be embedded. */
async function embed(): Promise<void> {
  await ask('hound');
  await store.service.upkeep.embeddings.whenIdle();
  tick();
}

async function administer(command: Command, action: 'administer' | 'fork' | 'schema' = 'administer'): Promise<void> {
  const request = { action, purpose: null, correlationId: 'c' };
  await store.service.gate.invoke(
    { ...analyst, credential: action === 'administer' ? 'admin' : 'token' },
    request,
    (invocation) => invocation.submit(command),
  );
}

async function embedded(): Promise<readonly Embedded[]> {
  const found: CommittedEntry[] = [];
  for await (const entry of store.service.store.log.read(0)) found.push(entry);
  return found.flatMap(({ body }) => (isOpen(body) && isEmbedded(body.content) ? [body.content] : []));
}

const none = (count: number): string =>
  `${count} ${count === 1 ? 'row is' : 'rows are'} ranked by words alone: for ${count === 1 ? 'it' : 'them'} there is no vector of the model small at this instant`;

test('rows get vectors beside what is asked, once; a replay and a start ask no model, and an earlier basis does not see them', async () => {
  await fill();
  expect(await ask('hound')).toEqual({ ids: 'd4', notices: [none(3)] });
  await store.service.upkeep.embeddings.whenIdle();
  // The texts of rows that came without a vector, and of columns that are not declared masked; that of the question first.
  expect(model.texts.splice(0)).toEqual(['hound', 'a puppy sleeps', 'alice\nthe loaf is warm', 'bob\na vessel sails']);
  const before = clock.wallNs;
  tick();
  expect(await ask('hound')).toEqual({ ids: 'd1', notices: [] });
  expect(await ask('loaf')).toEqual({ ids: 'd2', notices: [] });
  const earlier = `AS OF SYSTEM TIME ${JSON.stringify('2024-01-01T00:00:00.5Z').replaceAll('"', "'")} LIMIT 1`;
  expect(await ask('hound', earlier)).toEqual({ ids: 'd4', notices: [none(3)] });
  expect(before).toBeLessThan(clock.wallNs);

  // Of nobody's rows, and of subjects', in an entry each; nothing more comes of asking again.
  await store.service.upkeep.embeddings.round();
  expect((await embedded()).map(({ model: name, columns: of, positions }) => [name, of, positions.length])).toEqual([
    ['small', ['who', 'text'], 1],
    ['small', ['who', 'text'], 2],
  ]);

  const digest = store.service.store.projections.digests()['embeddings'];
  await store.close();
  model.texts.length = 0;
  await open();
  expect(store.service.store.projections.digests()['embeddings']).toBe(digest);
  expect(model.texts).toEqual([]);
  await store.close();
  // Without any derived file: from the log alone.
  for (const name of await disk.list('/data/projections')) await disk.unlink(`/data/projections/${name}`);
  await open();
  expect(store.service.store.projections.digests()['embeddings']).toBe(digest);
  expect(model.texts).toEqual([]);
  expect(await ask('hound')).toEqual({ ids: 'd1', notices: [] });
  // What was asked about before the start is looked after without being asked about again; a row that changes gets a vector anew.
  await store.put('Doc', [{ id: 'd1', who: null, text: 'a ship in a bottle' }], acme);
  tick();
  model.texts.length = 0;
  await store.service.upkeep.embeddings.round();
  expect(model.texts).toEqual(['a ship in a bottle']);
  tick();
  expect(await ask('boat', 'LIMIT 2')).toEqual({ ids: 'd1 d3', notices: [] });
  const { backup } = await store.service.upkeep.backups.create();
  const report = await store.service.upkeep.backups.restore(backup, '/restored');
  expect(report.projections.find(({ name }) => name === 'embeddings')).toMatchObject({ match: true });
  await store.close();
  const { keyring } = store.service.store;
  for (const directory of ['/data', '/restored'])
    expect(await verifyDirectory({ disk, directory, keyring })).toMatchObject({ ok: true, findings: [] });
});

test('an erasure takes the vectors of the subject out of reach, in the log as well, and those of others stay', async () => {
  await fill();
  await embed();
  // Somebody is erased while the model looks at what they wrote: nothing is written of it.
  await store.put('Doc', [{ id: 'd6', who: 'alice', text: 'a second loaf', secret: null }], acme);
  const asking = store.service.upkeep.embeddings.round();
  const [row] = await store.rows("ERASE SUBJECT 'alice' REASON 'asked to' CERTIFY", acme);
  await asking;
  expect(row).toMatchObject({ certified: true });
  const { embeddings } = store.service.store.projections;
  const left = async (): Promise<number[]> => (await embedded()).map(({ positions }) => positions.length);
  expect(await left()).toEqual([1, 1]);
  tick();
  expect((await ask('loaf', 'WHERE _rrf_score > 0 LIMIT 9')).notices).toEqual([]);
  const digest = embeddings.digest();
  await store.close();
  await open();
  expect(store.service.store.projections.embeddings.digest()).toBe(digest);
  expect(await left()).toEqual([1, 1]);
  await store.close();
});

test('what is removed for good takes its vector along, and out of the entry that held others too', async () => {
  await fill();
  await store.put('Doc', [{ id: 'd7', who: null, text: 'bread', secret: null }], acme);
  tick();
  await embed();
  expect((await embedded())[0]).toMatchObject({ positions: { length: 2 }, dropped: 0 });
  await store.invoke({ ...acme, roles: ['admin'] }, 'remove', (invocation) =>
    invocation.submit({ kind: 'remove-rows', type: 'Doc', keys: ['d1'] }),
  );
  const { log, projections } = store.service.store;
  const digest = projections.embeddings.digest();
  const yieldTurn = async (): Promise<void> => {};
  await new RedactionChore({ log, redactions: projections.redactions, clock, yieldTurn }).round();
  expect(projections.redactions.next()).toBeNull();
  expect((await embedded())[0]).toMatchObject({ positions: { length: 1 }, dropped: 1 });
  await store.close();
  const { keyring } = store.service.store;
  expect(await verifyDirectory({ disk, directory: '/data', keyring })).toMatchObject({ ok: true, findings: [] });
  for (const name of await disk.list('/data/projections')) await disk.unlink(`/data/projections/${name}`);
  await open();
  expect(store.service.store.projections.embeddings.digest()).toBe(digest);
  tick();
  expect((await ask('bread')).ids).toBe('d7');
  await store.close();
});

test('vectors of two models, or of two revisions of one, are never compared', async () => {
  await fill();
  await embed();
  await store.close();
  for (const settings of [{ SERVICE_EMBED_MODEL: 'turned' }, { SERVICE_EMBED_REVISION: '2' }, { SERVICE_EMBED_MODEL: 'long' }]) {
    await open(settings);
    const { notices } = await ask('hound');
    expect(notices[0]).toMatch(/^(?:3|4) rows are ranked by words alone: for them there is no vector of the model/);
    await store.service.upkeep.embeddings.whenIdle();
    tick();
    expect((await ask('hound')).ids).toBe('d1');
    await store.close();
  }
  // Those of the first are there still.
  await open();
  model.texts.length = 0;
  expect(await ask('hound')).toEqual({ ids: 'd1', notices: [] });
  expect(model.texts).toEqual(['hound']);
  await store.close();
});

test('a model that is down is left in peace for longer each time, is said to be down, and goes on where it stopped', async () => {
  await fill();
  model.refusesRows = true;
  await ask('hound');
  await store.service.upkeep.embeddings.whenIdle();
  model.isDown = true;
  const { ids, notices } = await ask('vessel');
  expect([ids, notices]).toEqual([
    'd3',
    ['the embedding model small does not answer: status 503: rows are ranked by words alone'],
  ]);
  const jobs = store.service.automation.jobs.list({ ...acme, credential: 'admin' });
  expect(jobs).toMatchObject([{ kind: 'embedding', about: 'Doc', state: 'failed', code: 'REL_UNAVAILABLE', unit: 'rows' }]);
  const before = model.calls;
  await store.service.upkeep.embeddings.round();
  expect(model.calls).toBe(before);
  clock.wallNs += 61_000_000_000n;
  await store.service.upkeep.embeddings.round();
  // All of them, and two by themselves.
  expect(model.calls).toBe(before + 3);
  clock.wallNs += 61_000_000_000n;
  await store.service.upkeep.embeddings.round();
  expect(model.calls).toBe(before + 3);
  model.isDown = model.refusesRows = false;
  clock.wallNs += 61_000_000_000n;
  await store.service.upkeep.embeddings.round();
  tick();
  expect(await ask('hound')).toEqual({ ids: 'd1', notices: [] });
  await store.close();
});

test('a text that the model does not take costs others nothing; guarded types, and columns that name rows, are not embedded', async () => {
  await open();
  await store.register('Note', { id: 'string', text: 'string', of: { ...plain, type: 'string', references: 'Doc' } }, 'id');
  await store.put(
    'Note',
    [
      { id: 'n1', text: 'dog', of: 'bread' },
      { id: 'n2', text: 'unspeakable', of: null },
      { id: 'n3', text: 'loaf', of: null },
    ],
    acme,
  );
  tick();
  model.texts.length = 0;
  await store.answer("HYBRID_SEARCH FROM Note QUERY 'hound' LIMIT 1", acme);
  await store.service.upkeep.embeddings.whenIdle();
  expect(model.texts).toEqual(['hound', 'dog', 'loaf']);
  tick();
  const { notices } = await store.answer("HYBRID_SEARCH FROM Note QUERY 'hound' LIMIT 1", acme);
  expect(notices).toEqual([none(1)]);
  await store.put('Note', [{ id: 'n4', text: 'a guarded dog', of: null }], acme);
  await administer({ kind: 'evolve-type', name: 'Note', properties: {}, guard: { protected: true } }, 'schema');
  model.texts.length = 0;
  await store.service.upkeep.embeddings.round();
  expect(model.texts).toEqual([]);
  await store.close();
});

test('a branch has what was embedded before and after its fork; of another organisation nothing is seen', async () => {
  await fill();
  await administer({ kind: 'fork-branch', name: 'what_if', source: 'main', shares: 'everything' }, 'fork');
  const there = { ...acme, branch: 'what_if' };
  await store.put('Doc', [{ id: 'd8', who: null, text: 'hound and dog', secret: null }], there);
  await store.put('Doc', [{ id: 'd9', who: null, text: 'a dog of another', secret: null }], { ...analyst, path: 'globex' });
  await embed();
  const on = await store.answer("HYBRID_SEARCH FROM Doc QUERY 'puppy' LIMIT 3", there);
  expect(rowsOf(on).map((row) => row['id'])).toEqual(['d1', 'd8', 'd4']);
  expect(on.notices ?? []).toEqual([]);
  expect((await ask('puppy', 'LIMIT 9')).ids).not.toMatch(/d8|d9/);
  await store.close();
});

test('who does not see each of the texts that a vector is of, gets none of it: whatever they are, answers are the same', async () => {
  const answers: string[] = [];
  const clerk = { ...acme, roles: ['clerk'] };
  for (const hidden of ['a ship', 'a puppy']) {
    disk = new MemoryDisk();
    await open();
    await store.register('Note', { id: 'string', text: 'string', other: 'string' }, 'id');
    const text =
      '@mask("redact") forbid(principal in Role::"clerk", action == Action::"readCell", resource == Column::"Note.other");';
    await administer({ kind: 'put-policy', id: 'all', text: 'permit(principal, action, resource);' });
    await administer({ kind: 'put-policy', id: 'mask', text });
    await store.put(
      'Note',
      [
        { id: 'n1', text: 'one', other: hidden },
        { id: 'n2', text: 'two bread', other: null },
      ],
      acme,
    );
    tick();
    const sql = "SELECT * FROM HYBRID_SEARCH('Note', 'hound', FUSION => 'likeness') LIMIT 5";
    for (let round = 0; round < 2; round++) {
      const answer = await store.answer(sql, clerk);
      answers.push(JSON.stringify([rowsOf(answer).map(({ id, _score }) => [id, _score]), answer.notices]));
      await store.service.upkeep.embeddings.whenIdle();
      tick();
    }
    const [first] = rowsOf(await store.answer(sql, acme));
    expect(Number(first!['_score']) > 0.9).toBe(hidden === 'a puppy');
    await store.close();
  }
  expect(answers.slice(0, 2)).toEqual(answers.slice(2));
});

test('SIMILAR TO a row without a vector of its own goes by the ones that the model gave, and by words before there are any', async () => {
  await open();
  await store.register('Note', { id: 'string', text: 'string' }, 'id');
  await store.put(
    'Note',
    [
      { id: 'n1', text: 'a puppy sleeps' },
      { id: 'n2', text: 'the hound' },
      { id: 'n3', text: 'a loaf sleeps' },
    ],
    acme,
  );
  tick();
  const similar = async (): Promise<unknown> => {
    const answer = await store.answer("SIMILAR TO Note WHERE id = 'n1' LIMIT 5", acme);
    return [rowsOf(answer).map((row) => row['id']), answer.notices ?? []];
  };
  expect(await similar()).toEqual([['n3'], []]);
  await store.service.upkeep.embeddings.whenIdle();
  tick();
  expect(await similar()).toEqual([['n2', 'n3'], []]);
  await store.put(
    'Note',
    [
      { id: 'n4', text: 'a dog' },
      { id: 'n5', text: null },
    ],
    acme,
  );
  tick();
  expect(await similar()).toEqual([
    ['n2', 'n3'],
    ['1 row is left out: for it there is no vector of the model small at this instant'],
  ]);
  await store.close();
});

test('a job that is cancelled leaves what it has written, and its type alone for an hour', async () => {
  await fill();
  let release = (): void => {};
  model.held = new Promise((resolve) => (release = resolve));
  await ask('hound');
  const who = { ...acme, credential: 'admin' } as const;
  const job = await vi.waitUntil(() => store.service.automation.jobs.list(who).find(({ state }) => state === 'running'));
  store.service.automation.jobs.cancel(job.id, who);
  await store.service.upkeep.embeddings.whenIdle();
  release();
  model.held = null;
  expect(store.service.automation.jobs.find(job.id, who)).toMatchObject({ state: 'cancelled', code: 'REL_CANCELLED' });
  const before = model.calls;
  await store.service.upkeep.embeddings.round();
  expect([model.calls, await embedded()]).toEqual([before, []]);
  clock.wallNs += 3_601_000_000_000n;
  await embed();
  expect(await ask('hound')).toEqual({ ids: 'd1', notices: [] });
  await store.close();
});

test('rows of others, embedded or not, change no byte of an answer', async () => {
  const answers: unknown[] = [];
  const [own, other] = [
    { ...analyst, path: 'acme/us' },
    { ...analyst, path: 'acme/eu' },
  ];
  for (const hidden of [0, 90]) {
    disk = new MemoryDisk();
    clock = new TestClock('2024-01-01');
    await open();
    await store.register('Note', { id: 'string', text: 'string' }, 'id');
    const rows = Array.from({ length: hidden }, (_, i) => ({ id: `x${i}`, text: i % 2 === 0 ? 'a hound' : 'a dog of bread' }));
    if (hidden > 0) await store.put('Note', rows, other);
    clock.set('2024-01-02');
    await store.put(
      'Note',
      [
        { id: 'n1', text: 'a puppy' },
        { id: 'n2', text: 'a vessel of bread' },
        { id: 'n3', text: 'nothing' },
      ],
      own,
    );
    for (const day of ['2024-01-03', '2024-01-04']) {
      clock.set(day);
      for (const sql of ["HYBRID_SEARCH FROM Note QUERY 'dog bread' LIMIT 9", "SIMILAR TO Note WHERE id = 'n1' LIMIT 9"]) {
        const answer = await store.answer(sql, own);
        // When a row was written is its own, and the same in both.
        const shown = rowsOf(answer).map((row) => Object.entries(row).map(([name, cell]) => `${name}: ${String(cell)}`));
        answers.push(JSON.stringify([shown, answer.notices, answer.estimatedTotalHits]));
      }
      await store.service.upkeep.embeddings.whenIdle();
    }
    await store.close();
  }
  expect(answers.slice(0, 4)).toEqual(answers.slice(4));
  expect(answers[0]).not.toEqual(answers[2]);
});
