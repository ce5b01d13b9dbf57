/** A store is backed up, and stores are made of its backups. */
import { beforeEach, describe, expect, it } from 'vitest';
import { listBackups } from '../src/upkeep/store-backups.ts';
import type { RestoreReport } from '../src/doors/http/system-contract.ts';
import { ServiceError } from '../src/errors.ts';
import type { Artefact } from '../src/log/backup/backup-artefact.ts';
import { formatArtefact } from '../src/log/backup/backup-artefact.ts';
import { removeTree } from '../src/log/disk/file-copy.ts';
import type { KeyContents } from '../src/log/keys/keys.ts';
import { MemoryDisk } from '../src/log/disk/memory-disk.ts';
import { verifyDirectory } from '../src/log/proofs/verify.ts';
import { restoreStore } from '../src/upkeep/store-restores.ts';
import type { Service } from '../src/service.ts';
import { FaultyDisk } from './simulation/faulty-disk.ts';
import { analyst, TestClock, TestRandom, TestStore } from './harness.ts';

const settings = { SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };

const open = (disk: MemoryDisk, more: Readonly<Record<string, string>> = {}): Promise<TestStore> =>
  TestStore.open('2024-01-01', { ...settings, ...more }, { disk });

async function fill(store: TestStore, rows = 30): Promise<void> {
  await store.register('Person', { id: 'string', name: 'string', age: 'integer' }, 'id');
  await store.put(
    'Person',
    Array.from({ length: rows }, (_, i) => ({ id: `p${i}`, name: `Name ${i}`, age: i })),
  );
  await store.put('Person', [{ id: 'p0', name: 'Other' }]);
  await store.delete('Person', ['p1']);
}

/** What restores a store whose process is gone: from its backup and its keys. */
async function restoreAlone(
  disk: MemoryDisk,
  service: Service,
  keys: KeyContents,
  source: string,
  target: string,
  yieldTurn = async (): Promise<void> => undefined,
): Promise<RestoreReport> {
  const random = new TestRandom(7);
  return restoreStore({
    disk,
    clock: new TestClock('2024-02-01'),
    random,
    settings: service.settings,
    version: service.version,
    source,
    target,
    keys,
    say: () => undefined,
    yieldTurn,
  });
}

describe('a backup', () => {
  let disk: MemoryDisk;
  let store: TestStore;
  beforeEach(async () => {
    disk = new MemoryDisk();
    store = await open(disk);
    await fill(store);
  });

  it('is a document beside the bytes that it lists, signed, without a key', async () => {
    const { backups } = store.service.upkeep;
    const { log } = store.service.store;
    const view = await backups.create();
    const document = JSON.parse(
      Buffer.from((await disk.readFile(`/data/backups/${view.backup}/backup.json`))!).toString(),
    ) as Artefact;
    expect(document).toMatchObject({
      schema_version: 1,
      id: view.backup,
      engine_version: 'test',
      log_id: log.status().logId,
      origin: 'annals/log/main',
      root: view.root,
      tree_size: log.status().leaves,
      blobs: [],
      key_ids: [1],
      erased_keys: 0,
    });
    expect(document.files.map(({ name }) => name)).toEqual(['log/00000000.log', 'log/manifest', 'log/checkpoint']);
    expect(Object.keys(document.projections!)).toContain('rows');
    expect(await backups.list()).toEqual([view]);
    expect(await disk.list(`/data/backups/${view.backup}`)).toEqual(['backup.json', 'log']);
  });

  it('restores to the same root, projections and answers', async () => {
    const view = await store.service.upkeep.backups.create();
    const before = await store.rows('SELECT * FROM Person ORDER BY id, system_from');
    await store.put('Person', [{ id: 'later', name: 'after the backup' }]);
    const report = await store.service.upkeep.backups.restore(view.backup, '/restored');
    expect(report).toMatchObject({
      backup: view.backup,
      target_dir: '/restored',
      root_match: true,
      root: view.root,
      tree_size: view.tree_size,
      compared_with: 'the store that was backed up',
      erased_absent: true,
      erased_keys: 0,
    });
    expect(report.projections.every(({ match }) => match)).toBe(true);
    expect(report.projections.map(({ name }) => name)).toEqual(store.service.store.projections.projector.names);

    const verified = await verifyDirectory({ disk, directory: '/restored', keyring: store.service.store.keyring });
    expect([verified.ok, verified.root]).toEqual([true, view.root]);
    const restored = await open(disk, { SERVICE_DATA_DIR: '/restored' });
    expect(await restored.rows('SELECT * FROM Person ORDER BY id, system_from')).toEqual(before);
    await restored.put('Person', [{ id: 'p99', name: 'goes on' }]);
    await restored.close();
  });

  it('is of one moment, however much is written meanwhile', async () => {
    const writing = (async () => {
      for (let i = 0; i < 40; i++) await store.put('Person', [{ id: `busy${i}`, name: 'x'.repeat(500) }]);
    })();
    const { backups } = store.service.upkeep;
    const views = [await backups.create(), await backups.create()];
    await writing;
    views.push(await backups.create());
    expect((await backups.list()).map(({ backup }) => backup)).toEqual(views.map(({ backup }) => backup).sort());
    for (const [i, view] of views.entries()) {
      const report = await backups.restore(view.backup, `/restored/${i}`);
      expect([report.root_match, report.root]).toEqual([true, view.root]);
    }
  });

  it('of a store in use is compared by two replays, and says so', async () => {
    await fill2(store);
    const view = await store.service.upkeep.backups.create();
    const report = await store.service.upkeep.backups.restore(view.backup, '/restored');
    expect(report.compared_with).toMatch(/^a second replay, .*in use/);
    expect(report.projections.every(({ match }) => match)).toBe(true);
  });

  it('says nothing of projections that have gone on since', async () => {
    const { log } = store.service.store;
    const { backups } = store.service.upkeep;
    const capture = log.capture.bind(log);
    log.capture = async () => {
      const captured = await capture();
      await store.put('Person', [{ id: 'since', name: 'written after the head' }]);
      return captured;
    };
    const { backup } = await backups.create();
    const report = await backups.restore(backup, '/restored');
    expect(report.compared_with).toMatch(/in use/);
    expect(report.projections.every(({ match }) => match)).toBe(true);
  });

  it('holds what was digested beside, of a store that nobody writes to', async () => {
    await fill2(store);
    const { projections } = store.service.store;
    const { backups } = store.service.upkeep;
    const view = await backups.create({ digests: () => projections.digests() });
    expect((await backups.restore(view.backup, '/restored')).compared_with).toBe('the store that was backed up');
  });

  it('restores a store that is gone', async () => {
    const keys = store.service.store.keyring.contents();
    const view = await store.service.upkeep.backups.create({ target: '/elsewhere' });
    await store.close();
    const report = await restoreAlone(disk, store.service, keys, `/elsewhere/${view.backup}`, '/new');
    expect([report.root_match, report.erased_absent]).toEqual([true, true]);
  });

  it('is restored by nobody who is told to end, and is not blamed for it', async () => {
    const view = await store.service.upkeep.backups.create();
    let calls = 0;
    const restore = (turnsMax: number): Promise<RestoreReport> =>
      restoreAlone(
        disk,
        store.service,
        store.service.store.keyring.contents(),
        `/data/backups/${view.backup}`,
        '/new',
        async () => {
          if (++calls > turnsMax) throw new ServiceError('REL_UNAVAILABLE', 'the store is draining');
        },
      );
    await restore(Infinity);
    for (let turns = calls; turns-- > 0; ) {
      calls = 0;
      await removeTree(disk, '/new').catch(() => undefined);
      await expect(restore(turns), `after ${turns} turns`).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
      expect(await disk.list('/new')).toEqual([]);
    }
    expect(calls).toBe(1);
  });

  it('is taken one at a time', async () => {
    const { backups } = store.service.upkeep;
    const first = backups.create();
    await expect(backups.create()).rejects.toMatchObject({ code: 'REL_CONFLICT' });
    await first;
  });

  it('is cut off when the store closes, and leaves nothing', async () => {
    const { backups } = store.service.upkeep;
    const taken = backups.create();
    const closed = store.close();
    await expect(taken).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
    await closed;
    expect(await disk.list('/data/backups')).toEqual([]);
  });

  it('of a memory is none', async () => {
    const memory = await TestStore.open();
    await expect(memory.service.upkeep.backups.create()).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
    await expect(memory.service.upkeep.backups.restore('0', '/x')).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
  });

  describe('never restores quietly', () => {
    let id: string;
    let home: string;
    beforeEach(async () => {
      id = (await store.service.upkeep.backups.create()).backup;
      home = `/data/backups/${id}`;
    });

    const refused = async (what: RegExp | string, code = 'REL_UNPROCESSABLE'): Promise<void> => {
      await expect(store.service.upkeep.backups.restore(id, '/restored')).rejects.toMatchObject({
        code,
        message: expect.stringMatching(what) as string,
      });
      expect(await disk.list('/restored')).toEqual([]);
    };
    const document = async (): Promise<Record<string, unknown>> =>
      JSON.parse(Buffer.from((await disk.readFile(`${home}/backup.json`))!).toString()) as Record<string, unknown>;
    const write = (value: unknown): Promise<void> => disk.replaceFile(`${home}/backup.json`, Buffer.from(JSON.stringify(value)));

    it.each<[string, (fields: Record<string, unknown>) => unknown, RegExp]>([
      ['an edited root', (fields) => ({ ...fields, root: '0'.repeat(64) }), /edited/],
      ['an edited digest', (fields) => edited(fields, { sha256: '0'.repeat(64) }), /edited/],
      ['an edited length', (fields) => edited(fields, { length: 64 }), /edited/],
      ['a file less', (fields) => ({ ...fields, files: (fields['files'] as unknown[]).slice(1) }), /edited/],
      ['a member more', (fields) => ({ ...fields, more: 1 }), /edited/],
      ['no signature', (fields) => ({ ...fields, signature: undefined }), /not signed by a key/],
      ['a signature of something else', (fields) => ({ ...fields, signature: 'AA==' }), /not signed by a key/],
      ['a newer version', (fields) => ({ ...fields, schema_version: 2 }), /schema_version 2; this version reads 1/],
      ['no version', (fields) => ({ ...fields, schema_version: 'one' }), /without a schema_version/],
      ['a lone surrogate', (fields) => ({ ...fields, id: '\ud800' }), /does not read/],
      ['nothing', () => ({}), /without a schema_version/],
      ['null', () => null, /without members/],
      ['a list', () => [], /without members/],
    ])('with %s', async (_, edit, what) => {
      await write(edit(await document()));
      await refused(what);
    });

    it.each<[string, number]>([
      ['an empty document', 0],
      ['a document that was cut', 100],
    ])('%s', async (_, length) => {
      const bytes = (await disk.readFile(`${home}/backup.json`))!;
      await disk.replaceFile(`${home}/backup.json`, bytes.subarray(0, length));
      await refused(/no JSON document/);
      expect(await store.service.upkeep.backups.list()).toEqual([
        { backup: id, damaged: expect.stringContaining('no JSON') as string },
      ]);
    });

    it.each<[string, (bytes: Buffer) => Uint8Array, RegExp]>([
      ['an emptied file', () => new Uint8Array(0), /with \d+ bytes; it has 0/],
      ['a file that was cut', (bytes) => bytes.subarray(0, bytes.length - 1), /with \d+ bytes; it has/],
      ['a longer file', (bytes) => Buffer.concat([bytes, Buffer.of(0)]), /with \d+ bytes; it has/],
      ['a turned bit', (bytes) => bytes.fill(bytes[50]! ^ 1, 50, 51), /another checksum/],
    ])('with %s', async (_, damage, what) => {
      for (const name of ['log/00000000.log', 'log/manifest', 'log/checkpoint']) {
        const bytes = (await disk.readFile(`${home}/${name}`))!;
        const damaged = damage(Buffer.from(bytes));
        await disk.replaceFile(`${home}/${name}`, damaged);
        await refused(what);
        await disk.replaceFile(`${home}/${name}`, bytes);
      }
    });

    it('with a file that is missing', async () => {
      await disk.unlink(`${home}/log/00000000.log`);
      await refused(/is missing/);
    });

    it('with a log that its own key would vouch for, and that its head does not', async () => {
      const { signature: _, ...fields } = (await document()) as unknown as Artefact & { signature: string };
      const shorter = { ...fields, tree_size: fields.tree_size - 1 };
      await disk.replaceFile(`${home}/backup.json`, formatArtefact(shorter, store.service.store.keyring.signer));
      await refused(/signed head of another tree/);
      const strange = { ...fields, files: [{ ...fields.files[0]!, name: 'log/../../data/keys/kek' }, ...fields.files.slice(1)] };
      await disk.replaceFile(`${home}/backup.json`, formatArtefact(strange, store.service.store.keyring.signer));
      await refused(/invalid name/);
    });

    it('with digests of projections that its log does not give', async () => {
      const { signature: _, ...fields } = (await document()) as unknown as Artefact & { signature: string };
      const other = { ...fields, projections: { ...fields.projections, rows: '0'.repeat(64) } };
      await disk.replaceFile(`${home}/backup.json`, formatArtefact(other, store.service.store.keyring.signer));
      await refused(/projections differ/);
    });

    it('under an unknown name, or one that leads elsewhere', async () => {
      for (const name of ['0', `${id}0`, '..', '../..', `../backups/${id}`, '', '/data', `${id}/log`, `${id}\0`]) {
        await expect(store.service.upkeep.backups.restore(name, '/restored')).rejects.toMatchObject({ code: 'REL_NOT_FOUND' });
      }
      expect(await disk.list('/restored')).toEqual([]);
    });

    it('into a directory that holds something, or that the store uses', async () => {
      await disk.makeDirectory('/full');
      await disk.replaceFile('/full/a', Buffer.from('kept'));
      await expect(store.service.upkeep.backups.restore(id, '/full')).rejects.toMatchObject({ code: 'REL_CONFLICT' });
      expect(await disk.list('/full')).toEqual(['a']);
      for (const target of ['restored', './x', '../x', '', '/data', '/data/x', '/x/../data/log', '/data/backups/y', '/x\0y']) {
        await expect(store.service.upkeep.backups.restore(id, target), target).rejects.toMatchObject({ code: 'REL_INVALID' });
      }
    });

    it('with keys of another store', async () => {
      const parts = { disk, random: new TestRandom(5) };
      const other = await TestStore.open('2024-01-01', { ...settings, SERVICE_DATA_DIR: '/other' }, parts);
      const attempt = (keys: KeyContents): Promise<unknown> => restoreAlone(disk, store.service, keys, home, '/restored');
      const [own, others] = [store.service.store.keyring.contents(), other.service.store.keyring.contents()];
      await expect(attempt(others)).rejects.toMatchObject({ message: expect.stringContaining('not signed by a key') as string });
      const { publicKeys } = own.secrets;
      const mixed = attempt({ ...others, secrets: { ...others.secrets, publicKeys } });
      await expect(mixed).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
      expect(await disk.list('/restored')).toEqual([]);
    });
  });

  it('whose log has rotted is not taken', async () => {
    const path = '/data/log/00000000.log';
    const bytes = Buffer.from((await disk.readFile(path))!);
    const file = await disk.open(path, 'write');
    await file.write(Buffer.of(bytes[700]! ^ 4), 700);
    await file.close();
    await expect(store.service.upkeep.backups.create()).rejects.toMatchObject({
      code: 'REL_UNAVAILABLE',
      message: expect.stringContaining('checksum') as string,
    });
    expect(await disk.list('/data/backups')).toEqual([]);
    expect(await listBackups(disk, '/data/backups', store.service.store.keyring.publicKeys)).toEqual([]);
  });

  it('begins again where rows are dropped from a file that it was to copy', async () => {
    let redacting = false;
    const dropped = new FaultyDisk({
      turn: async ({ kind, path }) => {
        if (redacting || kind !== 'makeDirectory' || !/^\/data\/backups\/.*\/log$/.test(path)) return;
        redacting = true;
        await one.service.store.log.redact([7], async () => undefined);
      },
    });
    const one = await TestStore.open('2024-01-01', settings, { disk: dropped });
    await fill(one);
    await one.invoke(analyst, 'remove', (invocation) => invocation.submit({ kind: 'remove-rows', type: 'Person', keys: ['p5'] }));
    const { backup } = await one.service.upkeep.backups.create();
    expect(redacting).toBe(true);
    const report = await one.service.upkeep.backups.restore(backup, '/restored');
    expect(report.root_match).toBe(true);
    expect(await dropped.list('/restored/log')).toEqual(['00000000.1.log', '00000001.log', 'checkpoint', 'manifest']);
    expect(await one.service.upkeep.backups.list()).toHaveLength(1);
  });

  it('that was cut off is cleared by the next one', async () => {
    const { logId } = store.service.store.log.status();
    const left = `/data/backups/${logId.slice(0, 8)}-0190163d-8694-739b-aea5-966c26f8ad90`;
    const others = '/data/backups/00000000-0190163d-8694-739b-aea5-966c26f8ad90';
    for (const home of [left, others, '/data/backups/mine']) {
      await disk.makeDirectory(`${home}/log`);
      await disk.replaceFile(`${home}/log/00000000.log`, Buffer.from('half'));
    }
    expect(await store.service.upkeep.backups.list()).toEqual([]);
    const { backup } = await store.service.upkeep.backups.create();
    expect(await disk.list('/data/backups')).toEqual(['00000000-0190163d-8694-739b-aea5-966c26f8ad90', backup, 'mine'].sort());
  });
});

/** More than one turn digests. */
async function fill2(store: TestStore): Promise<void> {
  const rows = Array.from({ length: 2_500 }, (_, i) => ({ id: `m${i}`, name: 'many', age: i }));
  await store.put('Person', rows);
}

/** The first file of the list, with something else about it. */
function edited(fields: Record<string, unknown>, change: object): unknown {
  const [first, ...rest] = fields['files'] as object[];
  return { ...fields, files: [{ ...first, ...change }, ...rest] };
}
