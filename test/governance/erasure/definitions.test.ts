/**
 * What somebody defined and what names a subject goes with the subject: from the store, from what is replayed of its log, and from what is
 * restored of a backup of before, with the keys of after.
 */
import { afterEach, expect, test } from 'vitest';
import type { KeyContents, Keyring } from '../../../src/log/keys/keys.ts';
import { isSealedText } from '../../../src/log/keys/sealed-text.ts';
import { type EntryBody, isOpen } from '../../../src/log/entries/entry.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { AuditProjection } from '../../../src/projections/audit/projection.ts';
import type { JobDefinition } from '../../../src/projections/jobs/job.ts';
import { Projections } from '../../../src/projections/projections.ts';
import type { RuleDefinition } from '../../../src/projections/rules/rule.ts';
import { sealedTextIn, textKeysOf, textOpener } from '../../../src/projections/sealed-definitions.ts';
import type { Service } from '../../../src/service.ts';
import type { Store } from '../../../src/store.ts';
import { restoreStore } from '../../../src/upkeep/store-restores.ts';
import { TestRandom, TestStore } from '../../harness.ts';
import { acme, ErasureWorld, settings, verifyReceipt } from './erasure-world.ts';

let world: ErasureWorld;

const isAbout = (who: string): string => `SELECT name FROM Person WHERE who = '${who}'`;
const author = { credential: 'none', token: null } as const;
const unscheduled = {
  interval_secs: null,
  cron: null,
  time_zone: null,
  at: null,
  after: null,
  catch_up: 'one',
  run_now: false,
  timeout_secs: 3_600,
  purpose: null,
} as const;

function ruleOf(who: string, name = `of ${who}`): RuleDefinition {
  const rest = {
    object_type: 'Person',
    severity: 'low',
    enabled: true,
    dedupe_by: [],
    window_secs: 60,
    interval_secs: 60,
  } as const;
  return { kind: 'detection', language: 'sql', name, condition: `who = '${who}'`, purpose: null, ...rest };
}

async function putRule(id: string, definition: RuleDefinition, changes?: string): Promise<void> {
  const command = { kind: 'put-rule', id, definition, author, ...(changes !== undefined && { changes }) } as const;
  await world.store.invoke(acme, 'ingest', (invocation) => invocation.submit(command));
}

async function putJob(id: string, name: string, run: JobDefinition['run']): Promise<void> {
  const definition = { ...unscheduled, name, run };
  await world.store.invoke(acme, 'ingest', (invocation) => invocation.submit({ kind: 'put-job', id, definition, owner: author }));
}

interface Kind {
  readonly make: (who: string) => Promise<unknown>;
  /** Of all that are there: names, texts. */
  readonly shown: (service: Service) => readonly unknown[];
}

const ofJobs = ({
  store: {
    projections: { jobs },
  },
}: Service): readonly unknown[] => [...jobs.all()].map(({ definition: { name, run } }) => [name, run]);
const ofViews = ({
  store: {
    projections: { views },
  },
}: Service): readonly unknown[] => views.viewsOn(0).map(({ sql }) => sql);

const kinds: Readonly<Record<string, Kind>> = {
  'a rule': {
    make: (who) => putRule(`r-${who.length}`, ruleOf(who)),
    shown: ({
      store: {
        projections: { rules },
      },
    }) => rules.rulesOn(0).map(({ definition }) => definition),
  },
  'a job': { make: (who) => putJob(`j-${who.length}`, `of ${who}`, { sql: isAbout(who) }), shown: ofJobs },
  'the arguments of a run': {
    make: (who) =>
      world.store.invoke(acme, 'ingest', (invocation) => {
        const run = { workflow: 'any', arguments: { of: [{ who }] } };
        const definition = { ...unscheduled, name: 'any', run, once: true } as const;
        return invocation.submit({ kind: 'put-job', id: `o-${who.length}`, definition, owner: author });
      }),
    shown: ofJobs,
  },
  'a workflow': {
    make: (who) => putJob(`w-${who.length}`, `asks of ${who}`, { steps: [{ query: { sql: isAbout(who) } }] }),
    shown: ofJobs,
  },
  'a statement that runs long': {
    make: (who) => {
      const statement = { sql: isAbout(who), dialect: 'wide', purpose: null, token: null, branch: 'main' };
      const by = { principal: 'ann', credential: 'none', tenant: 'acme', started: '1', finished: null };
      const work = { kind: 'graph', about: 'Person', unit: 'rows', ...by, statement };
      const times = { attempt: 1, due: '1', basis: '1', alerts: 0, reason: null, missed: 0, result: null };
      const run = { id: `s-${who.length}`, job: null, group: null, state: 'running', ...times, work } as const;
      return world.store.service.gate.recordWork(run, { path: 'acme' });
    },
    shown: ({
      store: {
        projections: { jobs },
      },
    }) => [...jobs.works()].map(({ run }) => run.work.statement),
  },
  'a materialized view': {
    make: (who) =>
      world.store.execute(`CREATE MATERIALIZED VIEW V${who.length} AS ${isAbout(who)} REFRESH INCREMENTAL EVERY 60`, [], acme),
    shown: ofViews,
  },
  'a view': {
    make: (who) =>
      world.store.invoke(acme, 'ingest', (invocation) =>
        invocation.submit({ kind: 'create-view', name: `V${who.length}`, sql: isAbout(who), refreshSecs: 0 }),
      ),
    shown: ofViews,
  },
};

const derivedFromDefinitions = ['rules', 'jobs', 'views', 'open-entries'] as const;

const digestsOf = ({ projections }: Pick<Store, 'projections'>): readonly (string | undefined)[] =>
  derivedFromDefinitions.map((name) => projections.digests()[name]);

/** Of a reader that begins at the first entry. */
async function replayed({ store: { log, keyring } }: Service): Promise<{ readonly projections: Projections }> {
  const textKeys = keyring.subjects;
  const projections = new Projections({ newKey: () => 'unused', tokensMax: 9, textKeys, more: [new AuditProjection()] });
  for await (const entry of log.read(0)) projections.apply(entry);
  return { projections };
}

/** All that the log says to whoever has all the keys. */
async function textsIn({ store: { log, keyring } }: Service): Promise<string> {
  const open = textOpener(keyring.subjects);
  const texts: string[] = [];
  for await (const { body } of log.read(0)) if (body.kind !== 'rows' && body.kind !== 'access') texts.push(opened(body, open));
  return texts.join('\n');
}

function opened(body: EntryBody, open: ReturnType<typeof textOpener>): string {
  const sealed = isOpen(body) ? sealedTextIn(body) : body.kind === 'view' && isSealedText(body.sql) ? body.sql : null;
  return `${JSON.stringify(body)} ${sealed === null ? '' : (open(sealed) ?? '')}`;
}

function openRestored(): Promise<TestStore> {
  const { disk, clock } = world;
  return TestStore.open('2024-01-01', { ...settings, SERVICE_DATA_DIR: '/restored' }, { disk, clock, random: new TestRandom(3) });
}

/** From a backup and keys alone, as on another machine. */
function restoreWith(backup: string, keys: KeyContents): ReturnType<typeof restoreStore> {
  const { disk, clock, store } = world;
  const { settings: own, version } = store.service;
  const files = {
    source: `/data/backups/${backup}`,
    target: '/restored',
    say: () => undefined,
    yieldTurn: async () => undefined,
  };
  return restoreStore({ disk, clock, random: new TestRandom(5), settings: own, version, keys, ...files });
}

afterEach(() => world.store.close());

test.each(Object.entries(kinds))('%s that names the subject, restored from a backup of before', async (_, { make, shown }) => {
  world = await (await new ErasureWorld().open()).fill();
  await make('bob');
  const others = shown(world.store.service);
  await make('alice');
  expect(shown(world.store.service)).toHaveLength(2);
  expect(await textsIn(world.store.service)).toContain('alice');
  const { backup, root } = await world.store.service.upkeep.backups.create();
  const { receipt, certified, key } = await world.erase();
  expect(certified).toBe(true);
  verifyReceipt(JSON.stringify(receipt), world.logKey, key);
  expect(shown(world.store.service)).toEqual(others);
  expect(await textsIn(world.store.service)).not.toContain('alice');
  expect(digestsOf(world.store.service.store)).toEqual(digestsOf(await replayed(world.store.service)));

  const report = await world.store.service.upkeep.backups.restore(backup, '/restored');
  expect(report).toMatchObject({ root_match: true, root, erased_absent: true, erased_keys: 2 });
  expect(report.projections.every(({ match }) => match)).toBe(true);
  const { keyring } = world.store.service.store;
  const verified = await verifyDirectory({ disk: world.disk, directory: '/restored', keyring });
  expect(verified).toMatchObject({ ok: true, findings: [] });
  const restored = await openRestored();
  expect(shown(restored.service)).toEqual(others);
  expect(await textsIn(restored.service)).not.toContain('alice');
  expect(await textsIn(restored.service)).toContain('bob');
  await restored.close();
});

test('it leaves no file of the log to be written anew, and takes no key but its own', async () => {
  world = await (await new ErasureWorld().open()).fill();
  for (const { make } of Object.values(kinds).slice(0, -1)) for (const who of ['alice', 'bob']) await make(who);
  await world.store.service.store.log.seal();
  const before = await world.disk.list('/data/log');
  const keys = async (): Promise<number> => {
    let found = 0;
    for await (const { body } of world.store.service.store.log.read(0))
      found += textKeysOf(body).filter((id) => world.store.service.store.keyring.subjects.opening(id) !== null).length;
    return found;
  };
  expect(await keys()).toBe(12);
  await world.erase();
  expect(await keys()).toBe(6);
  expect(await world.disk.list('/data/log')).toEqual(before);
});

test('of versions of a rule those go that name the subject, and others take no place that they left', async () => {
  world = await (await new ErasureWorld().open()).fill();
  const names = (): unknown =>
    ['a', 'b', 'c'].map((id) => world.store.service.store.projections.rules.versions(0, id).map(({ version }) => version));
  const on = (): unknown => world.store.service.store.projections.rules.rulesOn(0).map(({ id, version }) => [id, version]);
  const [harmless, telling] = [ruleOf('bob'), ruleOf('alice', 'of bob')];
  // The first version names the subject, the last one, and one between others.
  await putRule('a', { ...telling, name: 'a' });
  await putRule('b', { ...harmless, name: 'b' });
  await putRule('c', { ...harmless, name: 'c' });
  await putRule('a', { ...harmless, name: 'a' }, 'a');
  await putRule('b', { ...telling, name: 'b' }, 'b');
  await putRule('c', { ...telling, name: 'c' }, 'c');
  await putRule('c', { ...harmless, name: 'c', severity: 'high' } as RuleDefinition, 'c');
  expect(names()).toEqual([
    [1, 2],
    [1, 2],
    [1, 2, 3],
  ]);
  const { backup } = await world.store.service.upkeep.backups.create();
  await world.erase();
  const [left, standing] = [
    [[2], [1], [1, 3]],
    [
      ['c', 3],
      ['a', 2],
    ],
  ];
  expect([names(), on()]).toEqual([left, standing]);
  expect(digestsOf(world.store.service.store)).toEqual(digestsOf(await replayed(world.store.service)));
  await world.store.service.upkeep.backups.restore(backup, '/restored');
  await world.store.close();
  world.store = await openRestored();
  expect([names(), on()]).toEqual([left, standing]);
});

test('a view in whose place one came that names the subject is ended all the same', async () => {
  world = await (await new ErasureWorld().open()).fill();
  const put = (sql: string, replaces?: true) =>
    world.store.invoke(acme, 'ingest', (invocation) =>
      invocation.submit({ kind: 'create-view', name: 'Seen', sql, refreshSecs: 0, ...(replaces && { replaces }) }),
    );
  const at: number[] = [];
  for (const who of ['bob', 'alice']) {
    await put(isAbout(who), who === 'alice' || undefined);
    at.push(world.store.service.store.log.basis().position);
  }
  const shown = (basis?: number) => world.store.service.store.projections.views.viewsOn(0, basis).map(({ sql }) => sql);
  expect(shown()).toEqual([isAbout('alice')]);
  const { backup } = await world.store.service.upkeep.backups.create();
  await world.erase();
  expect([shown(), shown(at[1]), shown(at[0])]).toEqual([[], [], [isAbout('bob')]]);
  expect(digestsOf(world.store.service.store)).toEqual(digestsOf(await replayed(world.store.service)));
  await world.store.service.upkeep.backups.restore(backup, '/restored');
  await world.store.close();
  world.store = await openRestored();
  expect([shown(), shown(at[1]), shown(at[0])]).toEqual([[], [], [isAbout('bob')]]);
});

test('a subject that is a number is found in what somebody wrote, and not in versions, attempts, intervals and positions', async () => {
  world = await (await new ErasureWorld().open()).fill();
  await putRule('r', ruleOf('bob'));
  await putJob('j', 'count', { sql: 'SELECT COUNT(*) FROM Person' });
  await putJob('w', 'asks', { workflow: 'any', arguments: { of: [61] } });
  const {
    automation: { scheduler },
    store: { projections },
  } = world.store.service;
  await scheduler.runNow(projections.jobs.job('j')!);
  await world.store.rows("FUSE_IDENTITIES('p2', 'p3', 'one voice')", acme);
  const { runCount } = projections.jobs.job('j')!;
  expect(runCount).toBe(1);
  // An erasure does not read runs, of which there may be very many.
  expect(new Set([...projections.openEntries.searchable()].map(({ kind }) => kind))).toEqual(
    new Set(['rule', 'job', 'judgement']),
  );
  // Numbers that their entries have: of versions and attempts, of windows and timeouts, and of rows that were judged.
  const { a, b } = projections.judgements.judgementsOn(0)[0]!;
  const numbers = [1, 60, 3_600, ...a.positions, ...b.positions].map(String);
  for (const who of [...numbers, '61']) {
    await world.store.put('Person', [{ id: `of-${who}`, who, name: 'Some', age: 1 }], acme);
    expect((await world.erase(who)).certified).toBe(true);
  }
  const { rules, jobs, judgements } = world.store.service.store.projections;
  expect(rules.rulesOn(0)).toHaveLength(1);
  expect([...jobs.all()].map(({ id }) => id)).toEqual(['j']);
  expect(judgements.judgementsOn(0)).toHaveLength(1);
  const again = await replayed(world.store.service);
  expect(digestsOf(world.store.service.store)).toEqual(digestsOf(again));
  expect(again.projections.jobs.job('j')!.runCount).toBe(1);
});

test('keys kept from before, and a log that tells of the erasure', async () => {
  world = await (await new ErasureWorld().open()).fill();
  for (const { make } of Object.values(kinds).slice(0, -1)) await make('alice');
  const keys = keptOf(world.store.service.store.keyring);
  await world.erase();
  const { backup } = await world.store.service.upkeep.backups.create();
  const report = await restoreWith(backup, keys);
  expect(report).toMatchObject({ erased_absent: true, erased_keys: 7 });
  const restored = await openRestored();
  expect(Object.values(kinds).flatMap(({ shown }) => shown(restored.service))).toEqual([]);
  expect(await textsIn(restored.service)).not.toContain('alice');
  await restored.close();
});

test('a key of a definition that is neither there nor destroyed is a loss, and no erasure', async () => {
  world = await (await new ErasureWorld().open()).fill();
  const keys = keptOf(world.store.service.store.keyring);
  await kinds['a rule']!.make('bob');
  const { backup } = await world.store.service.upkeep.backups.create();
  await expect(restoreWith(backup, keys)).rejects.toMatchObject({ message: expect.stringContaining('was not erased') as string });
  expect(await world.disk.list('/restored')).toEqual([]);
});

function keptOf(keyring: Keyring & { contents(): KeyContents }): KeyContents {
  const kept = keyring.contents();
  return { ...kept, records: [...kept.records].map((bytes) => bytes.slice()) };
}
