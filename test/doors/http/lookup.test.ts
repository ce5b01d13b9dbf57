/** Lookup tables from registration to answer: who sees them, what a refresh may do, and which paths are none. */
import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lookupFiles } from '../../../src/cli/lookup-files.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
let root: string;
let outside: string;
beforeAll(async () => {
  const directory = mkdtempSync(join(tmpdir(), 'annals-lookup-'));
  root = join(directory, 'root');
  outside = join(directory, 'outside');
  mkdirSync(root);
  mkdirSync(outside);
  world = await StoreWorld.open({}, { lookupFiles: lookupFiles(root) });
  await world.call('POST', '/types', {
    name: 'Call',
    properties: { key: 'string', code: 'string', n: 'integer' },
    primary_key: 'key',
  });
});
afterAll(async () => {
  await world.close();
  rmSync(join(root, '..'), { recursive: true, force: true });
});

const scoped = (path: string): Record<string, string> => ({ 'x-organization-id': path });

describe('a registered table', () => {
  beforeAll(async () => {
    writeFileSync(join(root, 'codes.csv'), 'code,country,"full name"\n49,DE,"Germany, Federal"\n33,FR,\n7,RU,""\n');
    await world.call('POST', '/ingest?object_type=Call', [
      { key: 'a', code: '49', n: 49 },
      { key: 'b', code: '33', n: 33 },
      { key: 'c', code: '99', n: 7 },
    ]);
  });

  test('is read in projections and conditions; what is not there is NULL', async () => {
    const registered = await world.query(
      'REGISTER LOOKUP codes FROM \'codes.csv\' KEY (code) FIELDS (country, "full name") REFRESH EVERY 5 MINUTES',
    );
    expect([registered.status, registered.json['rows']]).toEqual([
      200,
      [{ lookup: 'codes', rows: 3, loaded_at: expect.any(Number) }],
    ]);
    expect(
      await world.rows('SELECT key, LOOKUP codes(code) -> country AS c, LOOKUP codes(code) -> "full name" AS f FROM Call'),
    ).toEqual([
      { key: 'a', c: 'DE', f: 'Germany, Federal' },
      { key: 'b', c: 'FR', f: null },
      { key: 'c', c: null, f: null },
    ]);
    expect(await world.rows("SELECT key FROM Call WHERE LOOKUP codes(n) -> country = 'RU'")).toEqual([{ key: 'c' }]);
    expect((await world.query('SELECT LOOKUP codes(code) -> nothing AS x FROM Call')).status).toBe(400);
    expect((await world.query('SELECT LOOKUP none(code) -> country AS x FROM Call')).status).toBe(404);
  });

  test('belongs to the path of who registered it and those below; the nearer one counts', async () => {
    const register = (path: string, file: string): Promise<unknown> => {
      writeFileSync(join(root, file), `k,v\n1,${path}\n`);
      return world.call('POST', '/lookup/register', { name: 'who', path: file, key: 'k', fields: ['v'] }, scoped(path));
    };
    await register('acme', 'acme.csv');
    await register('acme/eu', 'eu.csv');
    const seen = async (path: string): Promise<unknown> => {
      await world.call('POST', '/ingest?object_type=Call', [{ key: 'k', code: '1' }], scoped(path));
      const { json, status } = await world.query(
        "SELECT LOOKUP who(code) -> v AS v FROM Call AS OF CURRENT WHERE key = 'k' LIMIT 1",
        scoped(path),
      );
      return status === 200 ? (json['rows'] as { v: unknown }[])[0]!.v : status;
    };
    expect(await seen('acme/eu/berlin')).toBe('acme/eu');
    expect(await seen('acme/us')).toBe('acme');
    expect(await seen('globex')).toBe(404);
    expect(await seen('acme-evil')).toBe(404);
    const listed = async (path: string): Promise<unknown[]> =>
      ((await world.call('GET', '/lookup', undefined, scoped(path))).json['lookups'] as { path: string }[]).map(
        (each) => each.path,
      );
    expect([await listed('acme/eu'), await listed('acme'), await listed('globex')]).toEqual([
      ['eu.csv', 'acme.csv'],
      ['acme.csv'],
      [],
    ]);
  });

  test('is dropped by its own path, and by nobody else', async () => {
    writeFileSync(join(root, 'drop.csv'), 'k,v\n1,x\n');
    const owner = scoped('drops');
    const asked = 'SELECT LOOKUP mine(code) -> v AS v FROM Call';
    await world.call('POST', '/ingest?object_type=Call', [{ key: 'k', code: '1' }], owner);
    await world.query("REGISTER LOOKUP mine FROM 'drop.csv' KEY (k) FIELDS (v)", owner);
    expect(await world.rows(asked, owner)).toEqual([{ v: 'x' }]);
    const refusals = async (name: string): Promise<unknown> => {
      const replies = [scoped('drops/eu'), scoped('globex'), {}].map((each) => world.query(`DROP LOOKUP ${name}`, each));
      return (await Promise.all(replies)).map(({ status, json }) => [status, String(json['detail']).replace(name, '…')]);
    };
    expect(await refusals('mine')).toEqual(await refusals('none'));
    const dropped = await world.query('DROP LOOKUP mine', owner);
    expect([dropped.status, dropped.json['rows']]).toEqual([200, [{ lookup: 'mine', dropped: true }]]);
    expect((await world.query(asked, owner)).status).toBe(404);
    expect((await world.query('DROP LOOKUP mine', owner)).status).toBe(404);
    const { json } = await world.call('GET', '/audit/entries?limit=100&action=schema', undefined, owner);
    const recorded = (json['entries'] as { template: string; decision: string }[]).map((each) => each.template);
    expect(recorded).toContain('DROP LOOKUP mine');
  });

  test('replaces one of its name whole, and plans made before see the new one', async () => {
    const ask = async (): Promise<unknown> =>
      (await world.rows("SELECT LOOKUP swap(code) -> v AS v FROM Call WHERE key = 'a'"))[0];
    writeFileSync(join(root, 'one.csv'), 'k,v\n49,one\n');
    writeFileSync(join(root, 'two.csv'), 'v,k\ntwo,49\n');
    for (const [file, v] of [
      ['one.csv', 'one'],
      ['two.csv', 'two'],
    ] as const) {
      const body = { name: 'swap', path: file, key: 'k', fields: ['v'] };
      expect((await world.call('POST', '/lookup/register', body)).status).toBe(201);
      expect(await ask()).toEqual({ v });
    }
    writeFileSync(join(root, 'bad.csv'), 'v,k\ntwo\n');
    expect(
      (await world.call('POST', '/lookup/register', { name: 'swap', path: 'bad.csv', key: 'k', fields: ['v'] })).status,
    ).toBe(400);
    expect(await ask()).toEqual({ v: 'two' });
  });

  test.each([
    ['a key twice', 'k,v\n1,a\n1,b\n', 'row 2'],
    ['no key', 'k,v\n,b\n', 'row 1'],
    ['too few fields', 'k,v\n1\n', 'well-formed'],
    ['an open quote', 'k,v\n1,"a\n', 'well-formed'],
    ['no header', '', 'header'],
    ['a column missing', 'k,w\n1,a\n', '"v"'],
    ['a column twice', 'k,v,v\n1,a,b\n', 'twice'],
    ['other bytes than UTF-8', Buffer.from([0x6b, 0x2c, 0x76, 0x0a, 0xff, 0x2c, 0x61, 0x0a]), 'UTF-8'],
  ])('is refused: %s', async (_, text, why) => {
    writeFileSync(join(root, 'wrong.csv'), text);
    const reply = await world.call('POST', '/lookup/register', { name: 'wrong', path: 'wrong.csv', key: 'k', fields: ['v'] });
    expect([reply.status, reply.json['detail']]).toEqual([400, expect.stringContaining(why)]);
  });
});

describe('a path that is none', () => {
  beforeAll(() => {
    writeFileSync(join(outside, 'secret.csv'), 'k,v\n1,secret\n');
    writeFileSync(join(root, 'plain.csv'), 'k,v\n1,plain\n');
    mkdirSync(join(root, 'directory'));
    symlinkSync(join(outside, 'secret.csv'), join(root, 'link.csv'));
    symlinkSync(join(root, 'plain.csv'), join(root, 'inner-link.csv'));
    symlinkSync(outside, join(root, 'linked'));
    linkSync(join(outside, 'secret.csv'), join(root, 'hard.csv'));
    execFileSync('mkfifo', [join(root, 'pipe.csv')]);
    symlinkSync('/dev/zero', join(root, 'zero.csv'));
    symlinkSync('/proc/self/environ', join(root, 'environ.csv'));
  });

  const refused = [
    '../outside/secret.csv',
    'directory/../../outside/secret.csv',
    '/etc/passwd',
    '/proc/self/environ',
    '/dev/zero',
    '//etc/passwd',
    './plain.csv',
    'directory//plain.csv',
    '..%2foutside%2fsecret.csv',
    '..\\outside\\secret.csv',
    '\\\\host\\share\\x.csv',
    'C:plain.csv',
    'plain.csv\u0000.txt',
    'directory',
    'link.csv',
    'inner-link.csv',
    'linked/secret.csv',
    'hard.csv',
    'pipe.csv',
    'zero.csv',
    'environ.csv',
    'missing.csv',
    '',
    'PLAIN.csv',
    'cafe\u0301.csv',
  ];

  test.each(refused)('%j', async (path) => {
    const reply = await world.call('POST', '/lookup/register', { name: 'x', path, key: 'k', fields: ['v'] });
    expect(reply.status).toBe(400);
    // What is there, and whether anything is, can't be told from the refusal.
    if (!path.includes('\u0000')) expect(reply.json['detail']).toBe('the path names no regular file below SERVICE_LOOKUP_ROOT');
  });

  test('nor is any, where no root is set', async () => {
    const own = await StoreWorld.open();
    const reply = await own.call('POST', '/lookup/register', { name: 'x', path: 'plain.csv', key: 'k', fields: ['v'] });
    expect([reply.status, reply.json['detail']]).toEqual([403, expect.stringContaining('SERVICE_LOOKUP_ROOT')]);
    await own.close();
  });
});
