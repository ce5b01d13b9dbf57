import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { kindNumber } from '../../src/log/entries/body-codec.ts';
import { openKindNumbers, openKinds, rowBodiesOf } from '../../src/log/entries/entry.ts';
import { proveRow } from '../../src/log/proofs/row-proof.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { Projections } from '../../src/projections/projections.ts';
import { cellAt } from '../../src/log/values/vector-builder.ts';
import { verifyDirectory } from '../../src/log/proofs/verify.ts';
import { verifierPath } from '../proofs/judges.ts';
import { all, directory, keyringOf, openLog, plain, worldOn } from './world.ts';

const verifier = (await import(verifierPath)) as {
  rootFromPath(leaf: Buffer, index: number, size: number, path: Buffer[]): Uint8Array | null;
};
const fixtures = fileURLToPath(new URL('../../fixtures/logs/', import.meta.url));

async function diskOf(version: string): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  for (const folder of ['keys', 'log']) {
    await disk.makeDirectory(`${directory}/${folder}`);
    for (const name of readdirSync(`${fixtures}${version}/data/${folder}`)) {
      await disk.replaceFile(`${directory}/${folder}/${name}`, readFileSync(`${fixtures}${version}/data/${folder}/${name}`));
    }
  }
  return disk;
}

async function filesOf(disk: MemoryDisk): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const folder of ['keys', 'log']) {
    for (const name of await disk.list(`${directory}/${folder}`)) {
      files[`${folder}/${name}`] = Buffer.from((await disk.readFile(`${directory}/${folder}/${name}`))!).toString('hex');
    }
  }
  return files;
}

test.each(readdirSync(fixtures))(
  'log format %s replays to what it was made of, and opening it changes no byte',
  async (version) => {
    const disk = await diskOf(version);
    const before = await filesOf(disk);
    const { log, replayed } = await openLog(worldOn(disk));
    const expected = readFileSync(`${fixtures}${version}/expected.jsonl`, 'utf8').trimEnd().split('\n');
    expect(plain(replayed)).toEqual(expected);
    expect(plain(await all(log.read(0)))).toEqual(expected);
    await log.close();
    expect(await filesOf(disk)).toEqual(before);
  },
);

test.each(readdirSync(fixtures))('log format %s verifies down to the rows', async (version) => {
  const disk = await diskOf(version);
  const report = await verifyDirectory({ disk, directory, keyring: await keyringOf(worldOn(disk)) });
  expect(report).toMatchObject({ ok: true, findings: [] });
});

test('the branches of v1-branches hold what they were made of', async () => {
  const { log, replayed } = await openLog(worldOn(await diskOf('v1-branches')));
  const projections = new Projections({ newKey: () => 'unused', tokensMax: 1 });
  for (const entry of replayed) projections.apply(entry);
  const believed = (branch: string): string[] => {
    const { rows } = projections.snapshot(log.basis(), branch, 'acme');
    const system = log.basis().instant;
    const found: string[] = [];
    const scan = rows.scan({ type: 'Person', columns: ['_pk', 'age'], time: { system, valid: 'all' } });
    for (let step = scan.next(); step.done !== true; step = scan.next()) {
      const { columns, selection, first, count } = step.value;
      for (let k = 0; k < count; k++) {
        const row = selection ? selection[k]! : first + k;
        found.push(`${String(cellAt(columns[0]!, 'string', row))} ${String(cellAt(columns[1]!, 'integer', row))}`);
      }
    }
    return found;
  };
  expect(projections.branches.list().map(({ name, source, fork }) => [name, source, fork])).toEqual([
    ['dev', 'main', 16],
    ['types only', 'main', 13],
    ['ünï / cöde \u{1F600}', 'dev', 9],
  ]);
  expect(believed('main')).toEqual(['bob 1', 'cy 2', 'ada 20']);
  expect(believed('dev')).toEqual(['bob 1', 'cy 2', 'ada 50']);
  // Forked from the first `dev` before that ended `bob` and removed `cy`: of these two, only the removal reaches it.
  expect(believed('ünï / cöde \u{1F600}')).toEqual(['bob 1', 'dee 11', 'ada 30']);
  expect(believed('types only')).toEqual([]);
  await log.close();
});

test('policies, tenants and agreements of v2-governance are what they were made of', async () => {
  const { log, replayed } = await openLog(worldOn(await diskOf('v2-governance')));
  const projections = new Projections({ newKey: () => 'unused', tokensMax: 1 });
  for (const entry of replayed) projections.apply(entry);
  const { catalog, policies, tenants } = projections;
  expect(['Plain', 'Secret', 'Scoped', 'Both', 'Names'].map((name) => catalog.catalogOn(0, null).type(name)!.guard)).toEqual([
    undefined,
    { protected: true, accessScope: false },
    { protected: false, accessScope: true },
    { protected: true, accessScope: true },
    undefined,
  ]);
  expect(catalog.catalogOn(0, null).type('Names')!.properties['of']).toMatchObject({ references: 'Both' });
  expect(policies.current).toMatchObject({ epoch: 3, policies: [{ id: '__proto__' }] });
  expect(tenants.tenants()).toMatchObject([{ record: { id: 'acme', state: 'deleted' }, manner: 'purge', purged: true }]);
  expect(tenants.agreement('g-1')!.events.map(({ change }) => change)).toEqual([
    'proposed',
    'changed',
    'accepted',
    'activated',
    'suspended',
    'resumed',
    'revoked',
    'expired',
  ]);
  await log.close();
});

test('types and judgements of v5-identity are what they were made of', async () => {
  const { log, replayed } = await openLog(worldOn(await diskOf('v5-identity')));
  const projections = new Projections({ newKey: () => 'unused', tokensMax: 1 });
  for (const entry of replayed) projections.apply(entry);
  expect(projections.catalog.catalogOn(0, null).type('Wire')).toMatchObject({
    role: 'transfer',
    roleColumns: { from: 'payer', to: 'payee' },
    identifier: ['ref'],
    identifierKinds: { line: 'phone', payer: 'iban' },
  });
  expect(projections.judgements.judgementsOn(0).map(({ a, b, judgement, reason }) => [a.key, b.key, judgement, reason])).toEqual([
    ['a', 'b', 'positive', 'one passport: "Ünï"'],
    ['b', 'c', 'positive', null],
    ['c', 'b', 'negative', 'two birth dates'],
  ]);
  await log.close();
});

test('of v3-subjects one subject is erased in one tenant, and everything else is there', async () => {
  const disk = await diskOf('v3-subjects');
  const keyring = await keyringOf(worldOn(disk));
  expect(await verifyDirectory({ disk, directory, keyring })).toMatchObject({ ok: true, rows: 77, rowsErased: 6 });
  expect(keyring.subjects.tombstones().map(({ receipt }) => receipt)).toEqual(['e-1']);
  const { log, replayed } = await openLog(worldOn(disk), { keyring });
  const people = replayed.flatMap(({ body, context: { path } }) =>
    body.kind === 'rows' ? [[path, body.type, body.ops.length, body.dropped ?? []]] : [],
  );
  expect(people).toEqual([
    ['acme/eu', 'Person', 1, [0]],
    ['acme/eu', 'Person', 5, [0, 3]],
    ['acme/eu', 'Person', 60, []],
    ['acme/eu', 'Everything ünï', 5, [0, 3]],
    ['acme/eu', 'Person', 2, []],
    ['globex', 'Person', 2, []],
    [null, 'Person', 1, []],
    ['acme/other', 'Person', 1, [0]],
  ]);
  await log.close();
});

test('names of v4-names belong to their tenants, and a view has ended', async () => {
  const { log, replayed } = await openLog(worldOn(await diskOf('v4-names')));
  const projections = new Projections({ newKey: () => 'unused', tokensMax: 1 });
  for (const entry of replayed) projections.apply(entry);
  const people = (tenant: string | null) => projections.catalog.catalogOn(0, tenant).type('Person')!;
  expect([people(null), people('globex'), people('acme')].map(({ properties }) => Object.keys(properties).slice(4))).toEqual([
    [],
    ['more'],
    ['of'],
  ]);
  expect(people('acme')).toMatchObject({
    guard: { protected: true, accessScope: false },
    properties: { of: { references: 'Ünit' } },
    graphTriggers: [{ linkType: 'knows' }],
  });
  const branches = (tenant: string) => projections.branches.listFor(tenant).map(({ name, fork }) => [name, fork]);
  expect(branches('acme')).toEqual([
    ['dev', 7],
    ['shared', 9],
  ]);
  expect(branches('globex')).toEqual([['shared', 9]]);
  const { views } = projections.snapshot(log.basis(), 'main', null);
  expect(views.map(({ name, owner, sql }) => [name, owner, sql])).toEqual([['Adults', 'globex/eu', 'SELECT name FROM Person']]);
  await log.close();
});

test('types of v5-fields say what they are to functions, records what they asked, and open kinds are all there', async () => {
  const { log, replayed } = await openLog(worldOn(await diskOf('v5-fields')));
  const projections = new Projections({ newKey: () => 'unused', tokensMax: 1 });
  for (const entry of replayed) projections.apply(entry);
  const { catalog, openEntries } = projections;
  expect(catalog.catalogOn(0, null).type('Payment')).toMatchObject({ edge: { from: 'sender', to: 'receiver' } });
  expect(catalog.catalogOn(0, 'globex').type('Person')).toMatchObject({ role: 'person', language: 'de' });
  expect(catalog.catalogOn(0, 'acme').type('Payment')).toMatchObject({
    edge: { from: 'receiver', to: 'sender' },
    role: 'payment',
    identifier: ['iban', 'ünï \u{1F600}'],
    language: 'fr',
    properties: { receiver: { references: 'Person' } },
  });
  expect(catalog.catalogOn(0, 'acme').type('Person')).toMatchObject({ identifier: ['iban'], guard: { protected: true } });
  const records = replayed.flatMap(({ body }) => (body.kind === 'access' ? body.records : []));
  expect(records.map(({ statements = [], recalled }) => [statements.length, recalled?.ids.length ?? 0])).toEqual([
    [2, 0],
    [0, 0],
    [0, 3],
    [2, 3],
    [0, 0],
  ]);
  // All that there were when it was written.
  const kinds = openKinds.filter((kind) => openKindNumbers[kind] <= openKindNumbers.search);
  expect([...openEntries.searchable()].map(({ kind }) => kind)).toEqual(kinds.flatMap((kind) => [kind, kind, kind]));
  await log.close();
});

test('parts of v5-parts are rows like any others: erased, dropped and proven one by one', async () => {
  const disk = await diskOf('v5-parts');
  const keyring = await keyringOf(worldOn(disk));
  expect(await verifyDirectory({ disk, directory, keyring })).toMatchObject({ ok: true, rows: 96, rowsErased: 3 });
  const { log, replayed } = await openLog(worldOn(disk), { keyring });
  const parts = replayed.flatMap(({ leaf, body }) =>
    rowBodiesOf(body).map((part) => [leaf, part.type, part.ops.length, part.dropped]),
  );
  expect(parts).toEqual([
    [1, 'Person', 1, undefined],
    [2, 'Person', 1, undefined],
    [2, 'Ünit', 2, [0]],
    [3, 'Person', 40, undefined],
    [3, 'Ünit', 3, undefined],
    [3, 'Person', 40, undefined],
    [4, 'Person', 1, [0]],
    [4, 'Person', 3, [0]],
    [5, 'Person', 2, [1]],
    [5, 'Ünit', 2, [0]],
    [5, 'Person', 1, undefined],
  ]);
  const projections = new Projections({ newKey: () => 'unused', tokensMax: 1 });
  for (const entry of replayed) projections.apply(entry);
  const rowsAt = (type: string, position: number) => projections.rows.table('acme', type)?.versionAt(position) ?? -1;
  const last = replayed[5]!.position;
  expect([rowsAt('Person', last + 4) >= 0, rowsAt('Ünit', last + 3) >= 0, rowsAt('Person', last + 3)]).toEqual([true, true, -1]);
  const proven: unknown[] = [];
  for (const leaf of [2, 3, 4, 5]) {
    const { facts, open } = (await log.proofs.entry({ leaf }))!;
    for (const index of Array.from({ length: facts.positions }, (_, i) => i)) {
      const proof = await proveRow(facts, open().parts, index);
      if (proof === null) proven.push([leaf, index]);
      else {
        const path = proof.path.map((hash) => Buffer.from(hash));
        const root = verifier.rootFromPath(Buffer.from(proof.rowHash), index, facts.positions, path);
        expect(root, `${leaf} ${index}`).toEqual(new Uint8Array(facts.rowsRoot));
      }
    }
  }
  expect(proven).toEqual([
    [2, 1],
    [4, 0],
    [4, 1],
    [5, 1],
    [5, 2],
  ]);
  await log.close();
});

test('the offline verifier knows every kind of entry by its number', () => {
  const verifier = readFileSync(fileURLToPath(new URL('../../verify/annals-verify.mjs', import.meta.url)), 'utf8');
  const [, list = ''] = /^const kinds = \[null, (.*)\];$/m.exec(verifier) ?? [];
  const kinds = list.split(', ').map((quoted) => quoted.slice(1, -1));
  expect(Object.fromEntries(kinds.map((kind, i) => [kind, i + 1]))).toEqual(kindNumber);
});

test('rules and jobs of v5-automation are read as they were written', async () => {
  const { replayed } = await openLog(worldOn(await diskOf('v5-automation')));
  const projections = new Projections({ newKey: () => 'unused', tokensMax: 1 });
  for (const entry of replayed) projections.apply(entry);
  expect(projections.rules.rulesOn(0)).toMatchObject([
    { id: 'r1', version: 2, owner: 'acme/eu', author: { credential: 'token', token: 't1' }, definition: { enabled: false } },
  ]);
  expect(projections.rules.versions(0, 'r2')).toMatchObject([{ definition: { keep: 'source:crm' } }]);
  expect(projections.jobs.job('j1')).toMatchObject({
    state: 'paused',
    reason: 'REL_ACL',
    runCount: 1,
    totalAlerts: 3,
    open: null,
  });
  expect(projections.jobs.judgedUpTo('a'.repeat(64))).toBe(1_700_000_000_000_000_001n);
});

test('definitions of v5-sealed are read by their keys, and nothing of those whose keys are destroyed', async () => {
  const disk = await diskOf('v5-sealed');
  const keyring = await keyringOf(worldOn(disk));
  const { log, replayed } = await openLog(worldOn(disk));
  const projections = new Projections({ newKey: () => 'unused', tokensMax: 1, textKeys: keyring.subjects });
  for (const entry of replayed) projections.apply(entry);
  const { rules, jobs, views } = projections;
  expect(rules.rulesOn(0).map(({ id, version, definition }) => [id, version, definition.name])).toEqual([['r3', 2, 'third']]);
  const versions = ['r1', 'r2', 'r3'].map((id) => rules.versions(0, id).map(({ definition }) => definition.name));
  expect(versions).toEqual([['seen: "Ünï"'], ['of two'], ['third']]);
  expect([...jobs.all()]).toMatchObject([{ id: 'j1', totalAlerts: 3, definition: { name: 'nightly' }, owner: { token: 't1' } }]);
  expect([...jobs.works()].map(({ run }) => [run.id, run.work.statement?.sql])).toEqual([['w1', "CALL f('ada')"]]);
  expect(views.viewsOn(0).map(({ name, sql }) => [name, sql])).toEqual([['Kept', "SELECT id FROM Login WHERE who = 'ada'"]]);
  expect(views.viewsOn(0, 18).map(({ name }) => name)).toEqual(['Kept', 'Ended']);
  const without = new Projections({ newKey: () => 'unused', tokensMax: 1 });
  expect(() => replayed.forEach((entry) => without.apply(entry))).toThrow('where their keys are');
  await log.close();
});
