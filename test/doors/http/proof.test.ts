/** /audit/proof and /audit/log over the whole store: what they answer, that the one-file verifier believes it, and to whom. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import { verifierSays } from '../../proofs/judges.ts';
import type { Document } from '../../proofs/world.ts';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
let key: string;
/** Where `acme/eu` wrote rows e1 to e5. */
let written: bigint;

const scoped = (path: string | null): Record<string, string> => (path === null ? {} : { 'x-organization-id': path });
const get = (path: string, organization: string | null = 'acme/eu', headers = {}): Promise<Reply> =>
  world.call('GET', path, undefined, { ...scoped(organization), ...headers });

async function put(type: string, rows: readonly object[], organization: string | null, headers = {}): Promise<bigint> {
  const reply = await world.call('POST', `/ingest/auto?object_type=${type}`, rows, { ...scoped(organization), ...headers });
  if (reply.status !== 200) throw new Error(reply.text);
  return BigInt(/"system_from":(\d+)/.exec(reply.text)![1]!);
}

async function proof(query: string, organization: string | null = 'acme/eu'): Promise<Document> {
  const reply = await get(`/audit/proof?${query}`, organization);
  if (reply.status !== 200) throw new Error(reply.text);
  return reply.json as Document;
}

function proven(document: Document, head: string | null = null): string {
  const said = verifierSays({
    proof: Buffer.from(JSON.stringify(document)),
    key,
    head: head === null ? null : Buffer.from(head),
  });
  if (said.proven === null) throw new Error(said.why);
  return said.proven.join('\n');
}

beforeAll(async () => {
  world = await StoreWorld.open();
  key = (await get('/audit/log')).json['key'] as string;
  await put('Ware', [{ id: 'g1', n: 1 }], 'globex');
  written = await put(
    'Ware',
    [1, 2, 3, 4, 5].map((n) => ({ id: `e${n}`, n, text: `canary ${n}` })),
    'acme/eu',
  );
  await put('Ware', [{ id: 'n1', n: 1 }], null);
});
afterAll(() => world.close());

describe('a row', () => {
  test('is proven by the instant, the position or the leaf of its version, from what a client held before', async () => {
    const head = (await get('/audit/log/checkpoint')).text;
    await put('Ware', [{ id: 'later' }], 'acme/eu');
    const byInstant = await proof(`system_from=${written + 2n}&row=e3`);
    expect(proven(byInstant)).toContain('row 3 of 5 in it');
    expect(proven(byInstant)).toContain('"text": "canary 3"');
    expect((await proof(`position=${byInstant.position}&row=e3`)).row).toEqual(byInstant.row);
    expect((await proof(`leaf=${byInstant.leaf_index}&row=e3`)).position).toBe(byInstant.position);
    expect((await proof(`system_from=${written}&row=e3`)).position).toBe(byInstant.position);
    const grown = await proof(`system_from=${await put('Ware', [{ id: 'e9' }], 'acme/eu')}&row=e9&from=${head.split('\n')[1]}`);
    expect(proven(grown, head)).toContain('entries of the checkpoint that you hold, unchanged');
  });

  test('shows no neighbour', async () => {
    const { row, ...rest } = await proof(`system_from=${written + 1n}&row=e2`);
    const told =
      JSON.stringify(row) +
      Buffer.from(row!['row'] as string, 'base64').toString('latin1') +
      Buffer.from(rest['leaf'] as string, 'base64').toString('latin1');
    expect(told).toContain('canary 2');
    for (const other of [1, 3, 4, 5]) expect(told).not.toMatch(new RegExp(`canary ${other}`));
    expect((rest['leaf'] as string).length).toBeGreaterThan(100);
  });

  test('that was removed for good is not shown any more; the entry still stands', async () => {
    const instant = await put('Ware', [{ id: 'gone', text: 'secret' }], 'acme/eu');
    const before = await proof(`system_from=${instant}&row=gone`);
    expect((await world.call('DELETE', '/types/Ware/gone?hard=true', undefined, scoped('acme/eu'))).status).toBe(200);
    expect((await get(`/audit/proof?system_from=${instant}&row=gone`)).status).toBe(404);
    expect(proven(await proof(`leaf=${before.leaf_index}`))).toContain('kind rows');
    // Who has a proof from before keeps it.
    expect(proven(before)).toContain('secret');
  });

  test('of which there is none', async () => {
    for (const query of [
      `system_from=${written}&row=nobody`,
      `leaf=0&row=e1`,
      `system_from=${written - 1_000_000_000n}`,
      'position=9007199254740991',
      'leaf=99999999',
    ]) {
      const reply = await get(`/audit/proof?${query}`);
      expect([query, reply.status, reply.json['detail']]).toEqual([
        query,
        404,
        'there is no such entry or row, or none that this credential may see',
      ]);
    }
  });
});

describe('to whom', () => {
  test.each([
    ['acme/eu', true],
    ['acme', true],
    ['acme/eu/berlin', false],
    ['acme/us', false],
    ['acme/eu-west', false],
    ['globex', false],
    [null, false],
  ])('rows of acme/eu to %s: %s', async (reader, sees) => {
    const { position, leaf_index: leaf } = await proof(`system_from=${written}`);
    for (const [query, answer] of [
      [`position=${position}`, 200],
      [`leaf=${leaf}`, 200],
      [`system_from=${written}`, 200],
      [`position=${position}&row=e1`, 200],
      [`leaf=${leaf}&tree_size=999999999`, 400],
    ] as const) {
      const reply = await get(`/audit/proof?${query}`, reader);
      expect([query, reply.status]).toEqual([query, sees ? answer : 404]);
      // Not even whether there is such an entry.
      if (!sees) expect(reply.json['detail']).toBe((await get('/audit/proof?leaf=88888888', reader)).json['detail']);
    }
  });

  test('access records to those who made one of them, and a flush of several names no request', async () => {
    // Of one turn, so that one entry holds both records.
    const asking = { action: 'query', purpose: null, correlationId: '' } as const;
    await Promise.all(
      ['acme/eu', 'globex'].map((path) =>
        world.service.gate.invoke(
          { ...tenantlessCaller('tester', 'operator', 'cli'), path },
          { ...asking, correlationId: `request of ${path}` },
          async (open) => open.snapshot().instant,
        ),
      ),
    );
    const entries = async (path: string): Promise<{ leaf_index: number; correlation_id: string }[]> =>
      (await get('/audit/entries?limit=1000', path)).json['entries'] as never;
    const [ours, theirs] = [await entries('acme/eu'), await entries('globex')];
    const seen = new Set(ours.map((entry) => entry.leaf_index));
    for (const { leaf_index } of ours.slice(-5))
      expect(proven(await proof(`leaf=${leaf_index}`))).toContain('kind access, no position');
    const onlyTheirs = theirs.filter(({ leaf_index }) => !seen.has(leaf_index));
    expect(onlyTheirs.length).toBeGreaterThan(0);
    for (const { leaf_index } of onlyTheirs) expect((await get(`/audit/proof?leaf=${leaf_index}`)).status).toBe(404);
    const shared = theirs.filter(({ leaf_index }) => seen.has(leaf_index));
    expect(shared.length).toBeGreaterThan(0);
    for (const { leaf_index } of shared) {
      const leaf = Buffer.from((await proof(`leaf=${leaf_index}`))['leaf'] as string, 'base64').toString('latin1');
      for (const { correlation_id } of [...ours, ...theirs]) expect(leaf).not.toContain(correlation_id);
    }
  });

  test('genesis and seals to everybody, what others made of types and tokens to nobody', async () => {
    await world.service.store.log.seal();
    const size = world.service.store.log.status().leaves;
    for (const path of ['acme/eu', 'globex', null]) {
      const kinds = new Map<string, number>();
      for (let leaf = 0; leaf < size; leaf++) {
        const reply = await get(`/audit/proof?leaf=${leaf}`, path);
        if (reply.status !== 200) continue;
        const said = proven(reply.json as Document);
        const kind = /kind (\w+)/.exec(said)![1]!;
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        if (kind !== 'genesis' && kind !== 'seal' && kind !== 'access') {
          expect(said).toContain(path === null ? 'no organisation' : `organisation ${JSON.stringify(path)}`);
        }
      }
      expect([kinds.get('genesis'), kinds.get('seal')! >= 1, kinds.get('token') ?? 0]).toEqual([1, true, path === null ? 1 : 0]);
      // Each made a Ware of its own.
      expect(kinds.get('type')! >= 1).toBe(true);
    }
  });
});

describe('trees', () => {
  test('earlier ones prove the same entry, and each the one before it', async () => {
    const { leaf_index: leaf, tree_size: size } = await proof(`system_from=${written}`);
    for (let tree = leaf + 1; tree <= size; tree++) {
      const document = await proof(`leaf=${leaf}&tree_size=${tree}&from=${Math.max(1, tree - 1)}`);
      expect([document.tree_size, proven(document).includes('is in it')]).toEqual([tree, true]);
    }
  });

  test.each([
    ['position=1&leaf=1', 400],
    ['', 400],
    ['position=-1', 400],
    ['position=01', 400],
    ['position=9007199254740992', 400],
    ['system_from=99999999999999999999', 400],
    ['leaf=0&tree_size=0', 400],
    ['leaf=0&tree_size=99999999', 400],
    ['leaf=0&from=0', 400],
    ['leaf=0&from=99999999', 400],
    ['leaf=0&tree_size=1&from=2', 400],
    ['branch=nowhere', 404],
    ['branch=main', 404],
  ])('%s is %i', async (query, status) => {
    expect((await get(`/audit/proof?${query}`)).status).toBe(status);
  });

  test('a head is made for what no head covers yet, stored first, and served until something is newer', async () => {
    const { log } = world.service.store;
    await log.seal();
    const sealed = (await get('/audit/log')).json;
    const fresh = await proof(`system_from=${await put('Ware', [{ id: 'fresh' }], 'acme/eu')}`);
    expect(fresh.tree_size).toBeGreaterThan(sealed['tree_size'] as number);
    expect((await get('/audit/log/checkpoint')).text).toBe(fresh.checkpoint);
    expect((await get('/audit/log')).json).toMatchObject({
      tree_size: fresh.tree_size,
      root_hash: fresh['root_hash'],
      checkpoint: fresh.checkpoint,
      key,
    });
  });

  test('tiles give the signed root, and what is not complete is 404', async () => {
    const { tree_size: size, root_hash: root } = (await get('/audit/log')).json as { tree_size: number; root_hash: string };
    const leaves: Buffer[] = [];
    for (let first = 0; first < size; first += 256) {
      const width = Math.min(256, size - first);
      const path = `0/${String(first / 256).padStart(3, '0')}${width < 256 ? `.p/${width}` : ''}`;
      const url = `http://127.0.0.1:${world.door.port}/audit/log/tile/${path}`;
      const reply = await fetch(url, { headers: { authorization: `Bearer ${world.token}` } });
      expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/octet-stream']);
      expect(reply.headers.get('cache-control')).toContain('immutable');
      const tile = Buffer.from(await reply.arrayBuffer());
      for (let at = 0; at < tile.length; at += 32) leaves.push(tile.subarray(at, at + 32));
    }
    expect([leaves.length, mth(leaves).toString('base64')]).toEqual([size, root]);
    for (const [path, status] of [
      [`0/${String(Math.floor(size / 256)).padStart(3, '0')}`, 404],
      ['2/000.p/1', 404],
      ['63/000.p/1', 404],
      ['0/x001/234', 404],
      ['64/000', 400],
      ['00/000', 400],
      ['0/00', 400],
      ['0/x000/001', 400],
      ['0/001/001', 400],
      ['0/000.p/0', 400],
      ['0/000.p/256', 400],
      ['0/000.p/01', 400],
      ['entries/000', 501],
    ] as const) {
      expect([path, (await get(`/audit/log/tile/${path}`)).status]).toEqual([path, status]);
    }
    const wrongVerb = await world.call('POST', '/audit/log/tile/0/000');
    expect([wrongVerb.status, wrongVerb.headers['allow']]).toEqual([405, 'GET, HEAD']);
  });
});

test('as text it is a C2SP tlog-proof of the entry', async () => {
  const reply = await get(`/audit/proof?system_from=${written}`, 'acme/eu', { accept: 'text/plain' });
  expect(reply.headers['content-type']).toBe('text/plain; charset=utf-8; profile=c2sp.org/tlog-proof@v1');
  const json = await proof(`system_from=${written}&tree_size=${reply.text.split('\n\n')[1]!.split('\n')[1]}`);
  expect(reply.text).toBe(
    [
      'c2sp.org/tlog-proof@v1',
      `extra ${json['leaf'] as string}`,
      `index ${json.leaf_index}`,
      ...json.inclusion_path,
      '',
      json.checkpoint,
    ].join('\n'),
  );
  for (const more of ['row=e1', 'from=1']) {
    expect((await get(`/audit/proof?system_from=${written}&${more}`, 'acme/eu', { accept: 'text/plain' })).status).toBe(400);
  }
  const both = await get(`/audit/proof?system_from=${written}`, 'acme/eu', { accept: 'text/plain, application/json' });
  expect(both.headers['content-type']).toMatch(/^application\/json/);
});

test('a branch descends from its source at the fork, and what is written on it is proven there', async () => {
  const fork = await world.call('POST', '/v1/namespaces/trial/branch', { branch_from: 'main' }, scoped('acme/eu'));
  expect([fork.status, fork.text]).toEqual([201, expect.anything()]);
  const document = await proof('branch=trial');
  const said = proven(document);
  expect(said).toContain(`the branch "trial" descends from "main" below position ${document.branch!['fork_position'] as number}`);
  expect(document.branch!.fork.first).toBe(document.leaf_index);
  expect((await get('/audit/proof?branch=trial', 'globex')).status).toBe(404);
  const instant = await put('Ware', [{ id: 'e1', text: 'only there' }], 'acme/eu', { 'x-service-branch': 'trial' });
  expect(proven(await proof(`system_from=${instant}&row=e1`))).toMatch(/branch "trial"[^]*only there/);
});

test('audit entries name their entry in the chain, and how large the tree is', async () => {
  const page = (await get('/audit/entries?limit=3')).json as {
    tree_size: number;
    entries: { leaf_index: number; entry_hash: string; prev_hash: string }[];
  };
  const count = (await get('/audit/count')).json as { tree_size: number };
  expect(count.tree_size).toBeGreaterThanOrEqual(page.tree_size);
  for (const entry of page.entries) {
    const document = await proof(`leaf=${entry.leaf_index}`);
    expect(document['leaf_hash']).toBe(entry.entry_hash);
    expect(
      Buffer.from(document['leaf'] as string, 'base64')
        .subarray(30, 62)
        .toString('base64'),
    ).toBe(entry.prev_hash);
  }
});

test('the description of the interface has the routes', async () => {
  const { json } = await get('/openapi.json');
  const paths = Object.keys(json['paths'] as object);
  for (const path of ['/audit/proof', '/audit/log', '/audit/log/checkpoint']) expect(paths).toContain(path);
});

/** RFC 9162 section 2.1.1, word for word. */
function mth(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) return leaves[0]!;
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return createHash('sha256')
    .update(Buffer.concat([Buffer.of(1), mth(leaves.slice(0, k)), mth(leaves.slice(k))]))
    .digest();
}
