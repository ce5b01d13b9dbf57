/** Specification, "Endpoints", "Behaviour facts", "Errors": backups and restores over HTTP. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FaultyDisk, type Step } from '../../simulation/faulty-disk.ts';
import { send } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

const settings = { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: '/data' };

let world: StoreWorld;
let failing: (step: Step) => boolean = () => false;
const disk = new FaultyDisk({
  beforeStep: (step) => (failing(step) ? { kind: 'error', code: 'ENOSPC', bytes: 0 } : undefined),
});
let backup: Record<string, unknown>;

beforeAll(async () => {
  world = await StoreWorld.open(settings, { disk });
  await world.call('POST', '/ingest/auto?object_type=Note', [{ id: 'n1', text: 'kept' }]);
  backup = (await world.admin('POST', '/admin/backup', {})).json;
});
afterAll(() => world.close());

const codeOf = ({ status, json }: { status: number; json: Record<string, unknown> }): [number, unknown] => [
  status,
  (json['type'] as string | undefined)?.split('/').at(-1),
];

describe('POST /admin/backup', () => {
  test('says its name, root and size', () => {
    expect(backup).toEqual({
      backup: expect.stringMatching(/^[0-9a-f-]+$/) as string,
      created_at: expect.stringMatching(/Z$/) as string,
      engine_version: '2.4.1',
      root: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      tree_size: expect.any(Number) as number,
      size_bytes: expect.any(Number) as number,
      digest_tree_size: backup['tree_size'],
    });
  });

  test('takes no body as well as an empty one', async () => {
    expect((await world.admin('POST', '/admin/backup')).status).toBe(200);
    expect(codeOf(await world.admin('POST', '/admin/backup', { only: 'acme' }))).toEqual([400, 'REL_INVALID']);
  });

  test('of one tenant is answered 501', async () => {
    for (const body of [{ tenant: 'acme' }, { tenant_id: 'acme' }])
      expect(codeOf(await world.admin('POST', '/admin/backup', body))).toEqual([501, 'REL_NOT_IMPLEMENTED']);
  });

  test('whose capture fails is 503, and leaves nothing', async () => {
    const before = (await world.admin('GET', '/admin/backups')).json;
    for (const kind of ['create', 'write', 'sync', 'syncDirectory', 'makeDirectory', 'rename'] as const) {
      failing = (step) => step.kind === kind && step.path.startsWith('/data/backups');
      expect([kind, ...codeOf(await world.admin('POST', '/admin/backup', {}))]).toEqual([kind, 503, 'REL_UNAVAILABLE']);
      failing = () => false;
      expect((await world.admin('GET', '/admin/backups')).json).toEqual(before);
      const left = await disk.list('/data/backups');
      expect(left).toEqual((before['backups'] as { backup: string }[]).map((each) => each.backup));
    }
    // The store goes on.
    expect((await world.call('POST', '/ingest?object_type=Note', [{ id: 'n2', text: 'later' }])).status).toBe(200);
    expect((await world.admin('POST', '/admin/backup', {})).status).toBe(200);
  });
});

describe('GET /admin/backups', () => {
  test('lists them as they were answered', async () => {
    const { status, json } = await world.admin('GET', '/admin/backups');
    expect([status, (json['backups'] as unknown[])[0]]).toEqual([200, backup]);
  });
});

describe('POST /admin/restore', () => {
  test('restores into an empty directory and proves itself', async () => {
    const { status, json } = await world.admin('POST', '/admin/restore', { backup: backup['backup'], target_dir: '/restored' });
    expect([status, json]).toEqual([
      200,
      expect.objectContaining({
        backup: backup['backup'],
        target_dir: '/restored',
        root_match: true,
        root: backup['root'],
        tree_size: backup['tree_size'],
        size_bytes: backup['size_bytes'],
        erased_absent: true,
      }),
    ]);
    expect(json['projections']).toEqual(
      world.service.store.projections.projector.names.map((name) => ({
        name,
        digest: expect.any(String) as string,
        match: true,
      })),
    );
    const restored = await StoreWorld.open({ ...settings, SERVICE_DATA_DIR: '/restored' }, { disk });
    // Its tokens are those of then.
    const reply = await send(restored.door.port, 'POST', '/query', { sql: 'SELECT text FROM Note' }, bearer(world.token));
    expect(reply.json['rows']).toEqual([{ text: 'kept' }]);
    await restored.close();
  });

  test('into the same directory again is 409', async () => {
    const again = { backup: backup['backup'], target_dir: '/restored' };
    expect(codeOf(await world.admin('POST', '/admin/restore', again))).toEqual([409, 'REL_CONFLICT']);
  });

  test('of one tenant is answered 501, whatever else is said', async () => {
    const whole = { backup: backup['backup'], target_dir: '/tenant' };
    for (const body of [{ tenant: 'acme' }, { tenant_id: 'acme' }, { ...whole, tenant: 'acme' }, { ...whole, tenant_id: null }])
      expect(codeOf(await world.admin('POST', '/admin/restore', body))).toEqual([501, 'REL_NOT_IMPLEMENTED']);
    expect(await disk.list('/tenant')).toEqual([]);
  });

  test.each<[number, string, object]>([
    [404, 'REL_NOT_FOUND', { backup: 'none', target_dir: '/x' }],
    [404, 'REL_NOT_FOUND', { backup: '00000000-0', target_dir: '/x' }],
    [404, 'REL_NOT_FOUND', { backup: '../keys', target_dir: '/x' }],
    [400, 'REL_INVALID', {}],
    [400, 'REL_INVALID', { backup: '00000000-0' }],
    [400, 'REL_INVALID', { backup: '00000000-0', target_dir: 'x' }],
    [400, 'REL_INVALID', { backup: '00000000-0', target_dir: '/data/inside' }],
    [400, 'REL_INVALID', { backup: '00000000-0', target_dir: '/x', overwrite: true }],
  ])('%i %s for %o', async (status, code, body) => {
    expect(codeOf(await world.admin('POST', '/admin/restore', body))).toEqual([status, code]);
    expect(await disk.list('/x')).toEqual([]);
  });

  test('of a backup with a wrong checksum is 422, and leaves the target empty', async () => {
    const { json } = await world.admin('POST', '/admin/backup', {});
    const file = await disk.open(`/data/backups/${json['backup'] as string}/log/00000000.log`, 'write');
    await file.write(Buffer.of(0xff, 0xfe), 300);
    await file.close();
    const reply = await world.admin('POST', '/admin/restore', { backup: json['backup'], target_dir: '/x' });
    expect([...codeOf(reply), reply.json['detail']]).toEqual([
      422,
      'REL_UNPROCESSABLE',
      expect.stringContaining('checksum') as string,
    ]);
    expect(await disk.list('/x')).toEqual([]);
  });

  test('that the disk does not let happen leaves the target empty', async () => {
    for (const kind of ['create', 'write', 'sync', 'rename'] as const) {
      let count = 0;
      failing = (step) => step.kind === kind && step.path.startsWith('/y') && ++count === 2;
      const reply = await world.admin('POST', '/admin/restore', { backup: backup['backup'], target_dir: '/y' });
      failing = () => false;
      expect([kind, reply.status, await disk.list('/y')]).toEqual([kind, 500, []]);
    }
  });
});

const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` });
