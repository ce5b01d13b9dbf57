/**
 * One of two worlds, built by requests only: types, tokens, rows that everybody has of their own, and then, each in a slot,
 * what differs between the worlds. Every difference is in what no adversary may see.
 */
import { assert } from '../../src/errors.ts';
import { exactJson } from '../harness.ts';
import { Canaries } from './canaries.ts';
import { domainDefinitions, domainTypes } from './domain.ts';
import { adminSecret, type Heard, Lab, type SentHeaders } from './lab.ts';

export type Side = 'first' | 'second';

/**
 * `open`: no policy, no registered tenant, no agreement, as most stores are. `governed`: with conditions on rows, masks on
 * cells, agreements in force and revoked, and tenants that are suspended or made anew.
 */
export type Regime = 'open' | 'governed';

/** Whose token a request carries. */
export type Holder = (typeof holders)[number]['name'];

/** What tokens are minted for. Two tenants have a principal of the same name. */
const holders = [
  { name: 'root', fields: { principal: 'root' } },
  { name: 'acme', fields: { tenant_id: 'acme', principal: 'loader' } },
  { name: 'acme-evil', fields: { tenant_id: 'acme-evil', principal: 'loader' } },
  { name: 'globex', fields: { tenant_id: 'globex', principal: 'loader' } },
  { name: 'initech', fields: { tenant_id: 'initech', principal: 'loader' } },
  { name: 'wayne', fields: { tenant_id: 'wayne', principal: 'analyst' } },
  { name: 'officer', fields: { tenant_id: 'wayne', principal: 'officer', roles: ['unmask'] } },
  { name: 'limited', fields: { principal: 'limited', purposes: ['analytics'] } },
  { name: 'leaver', fields: { tenant_id: 'acme', principal: 'leaver' } },
  { name: 'auditor', fields: { principal: 'auditor', roles: ['auditor'] } },
  { name: 'umbrella', fields: { tenant_id: 'umbrella', principal: 'loader' } },
  { name: 'umbrella admin', fields: { tenant_id: 'umbrella', principal: 'head', roles: ['tenant-admin'] } },
  { name: 'cyber', fields: { tenant_id: 'cyber', principal: 'loader' } },
  { name: 'cyber admin', fields: { tenant_id: 'cyber', principal: 'head', roles: ['tenant-admin'] } },
  { name: 'acme admin', fields: { tenant_id: 'acme', principal: 'head', roles: ['tenant-admin'] } },
  { name: 'stark', fields: { tenant_id: 'stark', principal: 'loader' } },
  { name: 'hooli', fields: { tenant_id: 'hooli', principal: 'loader' } },
  { name: 'oscorp', fields: { tenant_id: 'oscorp', principal: 'loader' } },
  { name: 'oscorp admin', fields: { tenant_id: 'oscorp', principal: 'head', roles: ['tenant-admin'] } },
  { name: 'osborn admin', fields: { tenant_id: 'osborn', principal: 'head', roles: ['tenant-admin'] } },
  { name: 'platform', fields: { principal: 'platform', roles: ['platform-admin'] } },
  { name: 'breaker', fields: { principal: 'breaker', roles: ['break-glass'], attributes: { access_scopes: 'case-1' } } },
] as const;

/** What opens guarded types for whoever may open them. */
const opening = { 'x-service-break-glass': 'a reason', 'x-service-access-scope-ref': 'case-1' };

export const victimPath = 'acme/eu';

/** Everybody whose own rows stand between those of the others, and whose token writes them. */
export const residents: readonly (readonly [path: string | null, holder: Holder])[] = [
  [null, 'root'],
  ['acme', 'acme'],
  ['acme/us', 'acme'],
  [victimPath, 'acme'],
  ['acme/eu/berlin', 'acme'],
  ['acme/eu-west', 'acme'],
  ['acme-evil', 'acme-evil'],
  ['Acme/eu', 'root'],
  ['globex', 'globex'],
  ['globex/lab', 'globex'],
  ['wayne', 'wayne'],
  ['initech', 'initech'],
  ['umbrella', 'umbrella'],
  ['cyber', 'cyber'],
  ['stark', 'stark'],
  ['hooli', 'hooli'],
];

/** Whose own rows hold documents and papers. */
const readers: ReadonlySet<string | null> = new Set([null, 'globex', 'acme/us', victimPath, 'wayne', 'umbrella']);

/** A stored row, for the reference that answers are held against. */
export interface Written {
  readonly type: string;
  readonly path: string | null;
  readonly id: string;
  readonly cells: Readonly<Record<string, unknown>>;
  readonly versions: number;
  /** By a DELETE: stored still, not current any more. */
  readonly ended: boolean;
}

export class Stage {
  readonly lab: Lab;
  readonly side: Side;
  readonly regime: Regime;
  readonly canaries = new Canaries();
  readonly tokens = new Map<Holder | 'made up', string>();
  /** Ids that replies gave out, under names that both worlds share. */
  readonly ids = new Map<string, string>();
  /** Instants at which the differences began: of the first hidden row of each, where there is one. */
  readonly marks: bigint[] = [];
  /** An instant that has rows of some before it and of others after it. */
  cursor = 0n;
  readonly #rows = new Map<string, Written>();

  constructor(lab: Lab, side: Side, regime: Regime) {
    this.lab = lab;
    this.side = side;
    this.regime = regime;
  }

  get rows(): readonly Written[] {
    return [...this.#rows.values()];
  }

  headers(holder: Holder, path: string | null = null): SentHeaders {
    return {
      authorization: `Bearer ${this.tokens.get(holder)}`,
      ...(path === null ? {} : { 'x-organization-id': path }),
      ...(holder === 'breaker' ? opening : {}),
    };
  }

  /** A request that must be answered. */
  async must(
    method: string,
    path: string,
    headers: SentHeaders,
    body?: string,
    more: { readonly admin?: boolean } = {},
  ): Promise<Heard> {
    const heard = await this.lab.ask({ method, path, headers, ...(body === undefined ? {} : { body }), ...more });
    assert(heard.status < 300, `${method} ${path}: ${heard.status} ${heard.body.toString().slice(0, 500)}`);
    return heard;
  }

  admin(method: string, path: string, body?: object): Promise<Heard> {
    const headers = { authorization: `Bearer ${adminSecret}` };
    return this.must(method, path, headers, body === undefined ? undefined : JSON.stringify(body), { admin: true });
  }

  ask(sql: string, holder: Holder, path: string | null = null): Promise<Heard> {
    return this.must('POST', '/query', this.headers(holder, path), JSON.stringify({ sql }));
  }

  async mint(holder: Holder, fields: object): Promise<void> {
    const reply = jsonOf(await this.admin('POST', '/admin/tokens', fields));
    this.tokens.set(holder, reply['token'] as string);
    this.ids.set(`token of ${holder}`, reply['id'] as string);
  }

  /** Writes rows and remembers them. */
  async put(
    type: string,
    holder: Holder,
    path: string | null,
    rows: readonly Readonly<Record<string, unknown>>[],
    branch = 'main',
  ): Promise<void> {
    const body = rows.map((row) => exactJson(row)).join('\n');
    const headers = { ...this.headers(holder, path), 'x-service-branch': branch };
    const reply = jsonOf(await this.must('POST', `/ingest?object_type=${type}`, headers, body));
    assert(reply['accepted'] === rows.length, JSON.stringify(reply));
    if (branch !== 'main') return;
    for (const cells of rows) {
      // What a policy keeps from everybody who asks is no part of what they are shown.
      if (String(cells['note']).startsWith('sealed')) continue;
      const id = cells['id'] as string;
      const key = JSON.stringify([type, path, id]);
      const versions = (this.#rows.get(key)?.versions ?? 0) + 1;
      this.#rows.set(key, { type, path, id, cells, versions, ended: false });
    }
  }

  async remove(type: string, holder: Holder, path: string | null, id: string, hard: boolean): Promise<void> {
    await this.must('DELETE', `/types/${type}/${id}?hard=${hard}`, this.headers(holder, path));
    const key = JSON.stringify([type, path, id]);
    const row = this.#rows.get(key)!;
    if (hard) this.#rows.delete(key);
    else this.#rows.set(key, { ...row, versions: row.versions + 1, ended: true });
  }

  /** Rows of a path that are gone for good. */
  forget(path: string): void {
    for (const [key, row] of this.#rows) if (row.path === path) this.#rows.delete(key);
  }

  close(): Promise<void> {
    return this.lab.close();
  }
}

export const jsonOf = (heard: Heard): Record<string, unknown> => JSON.parse(heard.body.toString()) as Record<string, unknown>;

const plain = { id: 'string', name: 'string' };

const types: readonly object[] = [
  {
    name: 'Deal',
    primary_key: 'id',
    properties: {
      id: { type: 'string', required: true },
      who: 'string',
      amount: 'integer',
      rate: 'number',
      at: 'timestamp',
      note: 'string',
      ok: 'boolean',
      secret: { type: 'string', masked: true },
      emb: { type: 'vector', dims: 2 },
      shape: { type: 'vector', dims: 2, masked: true },
    },
  },
  { name: 'Card', primary_key: 'id', properties: { ...plain, pan: 'string', born: 'timestamp', ceiling: 'integer' } },
  {
    name: 'Party',
    primary_key: 'id',
    properties: { ...plain, boss: 'string', score: 'integer' },
    graph_triggers: [{ link_type: 'Reports', src_field: 'id', dst_field: 'boss' }],
  },
  { name: 'Dossier', primary_key: 'id', properties: { ...plain, size: 'integer' } },
  {
    name: 'Paper',
    primary_key: 'id',
    properties: { id: 'string', kind: 'string', body: 'json', aside: 'json', hidden: { type: 'json', masked: true } },
  },
  { name: 'Vault', primary_key: 'id', properties: plain, protected: true },
  { name: 'Cleared', primary_key: 'id', properties: plain, access_scope: true },
  { name: 'Clue', primary_key: 'id', properties: { id: 'string', vault: { type: 'string', references: 'Vault' } } },
  ...['Letter', 'Notice', 'Tale'].map((name) => ({
    name,
    primary_key: 'id',
    properties: { id: 'string', who: { type: 'string', subject: true }, sender: 'string', receiver: 'string' },
    graph_triggers: [{ link_type: `${name}Link`, src_field: 'sender', dst_field: 'receiver' }],
  })),
  ...domainDefinitions,
];

const csv: Readonly<Record<string, string>> = { 'names.csv': 'id,name\np1,One\np2,Two\n' };

const dealsOf = (at: number): Readonly<Record<string, unknown>>[] => [
  {
    id: 'd1',
    who: 'p1',
    amount: 10 + at,
    rate: 1.5,
    at: '2024-03-01',
    note: 'open',
    ok: true,
    secret: 's-1',
    emb: [1, 0.5],
    shape: [1, 0.5],
  },
  {
    id: 'd2',
    who: 'p2',
    amount: 20 + at,
    rate: 2.25,
    at: '2024-03-03',
    note: 'open',
    ok: false,
    secret: 's-2',
    emb: [0.5, 1],
    shape: [0.5, 1],
  },
  {
    id: 'd3',
    who: 'p1',
    amount: 30 + at,
    rate: 0.5,
    at: '2024-03-08',
    note: 'done',
    ok: true,
    secret: 's-3',
    emb: [1, -1],
    shape: [1, -1],
  },
  { id: 'd4', who: 'p9', amount: 40 + at, rate: 4, at: '2024-04-01', note: 'Ärger', ok: true },
];

const known = [
  { id: 'k1', subject: 'p1', predicate: 'knows', object: 'p2' },
  { id: 'k2', subject: 'p2', predicate: 'knows', object: 'p3' },
];

const parties = [
  { id: 'p1', name: 'Robert', boss: 'p2', score: 1 },
  { id: 'p2', name: 'Rupert', boss: 'p3', score: 2 },
  { id: 'p3', name: 'Tomb', boss: 'p1', score: 3 },
];

/** Words within json cells: what is shown of them, and what a mask and a policy keep back. */
const papers = [
  {
    id: 'q1',
    kind: 'plain',
    body: { note: 'open note', of: ['p1', { n: 7 }] },
    aside: { note: 'done' },
    hidden: { note: 's-1' },
  },
  { id: 'q2', kind: 'plain', body: { note: 'note of p2' }, aside: null, hidden: ['s-2'] },
];

const documents = ['open note', 'done note of p1'].map((note, i) => {
  const document = { _id: `o${i}`, note, of: { who: ['p1'] } };
  return { id: `shop.deals/o${i}`, database: 'shop', collection: 'deals', document };
});

const cards = [
  { id: 'k1', name: 'Ada', pan: '4000123412341111', born: '1990-05-05', ceiling: 1234 },
  { id: 'k2', name: 'Bob', pan: '4000123412342222', born: '1991-06-06', ceiling: 5678 },
];

/** What is the same in both worlds, up to the first slot. */
export async function openStage(side: Side, regime: Regime): Promise<Stage> {
  const files: Record<string, string> = { ...csv };
  const lab = await Lab.open({
    lookupFiles: { read: async (path) => Buffer.from(files[path] ?? 'id,name\n') },
  });
  const stage = new Stage(lab, side, regime);
  files['hidden.csv'] = `id,name\np1,${stage.canaries.text('rows of the victim', 'a lookup table')}\n`;
  for (const { name, fields } of holders) await stage.mint(name, fields);
  stage.tokens.set(
    'made up',
    stage.tokens.get('root')!.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
  );
  for (const type of types) await stage.must('POST', '/types', stage.headers('root'), JSON.stringify(type));
  for (const [i, [path, holder]] of residents.entries()) {
    await stage.put('Deal', holder, path, dealsOf(i));
    // Inside the first write of everybody's own rows there are rows on both sides of it.
    if (i === 4) stage.cursor = lab.now + 1n;
    await stage.put('Party', holder, path, parties);
    await stage.put('KnowledgeTriple', holder, path, known);
    await stage.put('Card', holder, path, cards);
    if (readers.has(path)) {
      await stage.put('Paper', holder, path, papers);
      await stage.put('DocumentEntry', holder, path, documents);
      for (const [type, { rows }] of Object.entries(domainTypes)) await stage.put(type, holder, path, rows);
    }
    await stage.put('Deal', holder, path, [{ ...dealsOf(i)[1]!, amount: 200 + i, note: 'done' }]);
    await stage.remove('Deal', holder, path, 'd3', false);
    const { canaries } = stage;
    for (const type of ['Cleared', 'Vault'])
      await stage.put(type, 'breaker', path, [{ id: 'v0', name: canaries.text('guarded rows', `${type} of ${path}`) }]);
    await stage.put('Clue', 'breaker', path, [{ id: 'c0', vault: canaries.text('guarded rows', `Clue of ${path}`) }]);
    await stage.ask(
      `CREATE MATERIALIZED VIEW by_note AS SELECT note, COUNT(*) AS n FROM Deal GROUP BY note REFRESH INCREMENTAL EVERY 60`,
      holder,
      path,
    );
    await stage.must(
      'POST',
      '/lookup/register',
      stage.headers(holder, path),
      JSON.stringify({ name: 'names', path: 'names.csv', key: 'id', fields: ['name'] }),
    );
    const exhibit = jsonOf(await stage.must('POST', '/exhibits', stage.headers(holder, path), '{"title":"own"}'))[
      'exhibit_id'
    ] as string;
    stage.ids.set(`exhibit of ${path}`, exhibit);
    const link = JSON.stringify({ sql: 'SELECT id, amount FROM Deal AS OF CURRENT' });
    await stage.must('POST', `/exhibits/${exhibit}/links`, stage.headers(holder, path), link);
  }
  await raiseFirst(stage);
  await guardLate(stage);
  // What expressions fail on, and what its owner must see: hidden from everybody else in both worlds.
  const note = stage.canaries.text('rows of the victim', 'a row of both worlds');
  await stage.put('Deal', 'acme', victimPath, [
    { id: 'x0', who: 'w0', amount: stage.canaries.number('rows of the victim', 'an amount of both worlds'), note },
    { id: 'x8', who: 'w8', amount: 9223372036854775807n, note },
  ]);
  await stage.must('POST', '/v1/namespaces/trial/branch', stage.headers('root'), '{"branch_from":"main"}');
  for (const [path, holder] of residents)
    await stage.put('Deal', holder, path, [{ id: 'b1', amount: 5, note: 'trial' }], 'trial');
  await stage.admin('DELETE', `/admin/tokens/${stage.ids.get('token of leaver')}`);
  return stage;
}

/** The first alert of a tenant brings the type of alerts, a name that all of its paths share. */
async function raiseFirst(stage: Stage): Promise<void> {
  const headers = stage.headers('acme', 'acme');
  const make = async (path: string, member: string, body: object): Promise<string> =>
    jsonOf(await stage.must('POST', path, headers, JSON.stringify(body)))[member] as string;
  const rule = await make('/rules', 'id', { name: 'first', object_type: 'Deal', condition_sql: "id = 'd1'" });
  const job = await make('/jobs', 'job_id', { name: 'first', run: { rules: [rule] }, run_now: false, purpose: 'test' });
  await stage.must('POST', `/jobs/${job}/run`, headers);
}

/** Edges are these or others, and only then what guards the type whose rows wrote them is raised. */
async function guardLate(stage: Stage): Promise<void> {
  for (const path of [null, 'globex', 'acme/us']) {
    const [one, other] = ['the end of an edge', 'another end of an edge'].map((where) =>
      stage.canaries.text('guarded rows', `${where} at ${path}`),
    );
    const [mine, theirs] = ['whose an edge is', 'whose another edge is'].map((where) =>
      stage.canaries.text('masked cells', `${where} at ${path}`),
    );
    const [end, who] = stage.side === 'first' ? [one, mine] : [other, theirs];
    for (const type of ['Letter', 'Notice'])
      await stage.put(type, 'breaker', path, [{ id: 'l0', who: end, sender: 'p1', receiver: end }]);
    await stage.put('Tale', 'breaker', path, [{ id: 'l0', who, sender: 'p1', receiver: 'p2' }]);
  }
  for (const [type, guard] of [
    ['Letter', { properties: {}, protected: true }],
    ['Notice', { properties: {}, access_scope: true }],
    ['Tale', { properties: { who: { type: 'string', subject: true, masked: true } } }],
  ] as const)
    await stage.must('POST', `/types/${type}/schema`, stage.headers('root'), JSON.stringify(guard));
}
