/**
 * One row for every route: what an adversary sends there to learn of what is hidden. A route without probes of its own is
 * probed by its example; a route that the running server registers beside the lists fails the matrix.
 */
import type { Route } from '../../src/doors/http/route.ts';
import { adminRoutes, dataRoutes } from '../../src/doors/http/routes/all.ts';
import { consoleSessionRoutes, workbenchRoutes } from '../../src/doors/http/routes/console.ts';
import { laterRoutes } from '../../src/doors/http/routes/unbuilt-routes.ts';
import { tools } from '../../src/doors/mcp/tools.ts';
import { verbs } from '../../src/doors/verbs/all.ts';
import type { Verb } from '../../src/doors/verbs/verb.ts';
import { assert } from '../../src/errors.ts';
import { exampleRequest } from '../doors/http/route-examples.ts';
import { filled, type Known, requestOf } from '../doors/verbs/examples.ts';
import type { Adversary } from './adversaries.ts';
import type { Compared } from './compare.ts';
import type { Heard, Sent } from './lab.ts';
import { documents, patterns } from './languages.ts';
import { searches, severalSearches } from './searches.ts';
import { jsonOf, type Stage } from './stage.ts';

export interface RouteRow {
  readonly probes: readonly Probe[];
  /** Recognised, and answered 501 until it is built: a row that goes on saying so once it is built fails. */
  readonly later?: true;
  readonly compared?: Compared;
  /** Figures of the whole store: nothing is hidden from a token without a tenant, which may name any path. */
  readonly storeWide?: true;
  /** Health and the like: for whoever comes. */
  readonly open?: true;
}

export interface Probe {
  /** Path with its parameters filled in; the route’s own when it has none. */
  readonly path?: (stage: Stage) => string;
  readonly body?: (stage: Stage) => string;
  readonly headers?: Readonly<Record<string, string>>;
  /** In place of the row’s. */
  readonly compared?: Compared;
  readonly storeWide?: true;
  /** What both worlds go on with after it. */
  readonly after?: (stage: Stage, adversary: Adversary, heard: Heard) => void;
}

/**
 * Numbers of entries and hashes over the whole log move with everything that is written. They stand on the surfaces that need
 * the audit right, and with the links of exhibits, which can’t be proven without them.
 */
export const positions: Compared = {
  blank: /("(?:leaf_index|tree_size|next|entry_hash|prev_hash|root_hash|checkpoint)":)(?:"[^"]*"|\d+|null)/g,
};

/** Hashes and paths through the tree, of lengths that move with it. */
export const bodyless: Compared = { bodyless: true };

const id = (name: string) => (stage: Stage) => stage.ids.get(name) ?? '0190163d-8694-739b-aea5-966c26f8ad90';
const at =
  (before: string, name: string, after = '') =>
  (stage: Stage): string =>
    `${before}${id(name)(stage)}${after}`;
const to = (path: string): Probe => ({ path: () => path });
const json = (value: object): Pick<Probe, 'body'> => ({ body: () => JSON.stringify(value) });

const rowsSent: readonly Probe[] = [
  { body: () => '{"id":"x1","who":"p1","amount":1,"note":"mine"}' },
  { body: () => '{"id":"x2","amount":2}\n{"id":"d1","amount":3}' },
  { body: () => '{"id":"x6","amount":2}', headers: { 'idempotency-key': 'once' } },
  { body: () => '{"id":"x6","amount":"many"}' },
];

const ingest = (url: string): RouteRow => ({
  probes: [
    ...rowsSent.map((probe) => ({ ...probe, path: () => `${url}?object_type=Deal` })),
    // Of each of these keys somebody has a row, and what is not sent is somebody's too.
    ...['patch=true', 'when=absent', 'when=present', 'when=2024-06-01', 'replace=true'].map((how) => ({
      body: () => '{"id":"x4","note":"mine"}\n{"id":"d1","amount":3}\n{"id":"d2","note":null}',
      path: () => `${url}?object_type=Deal&${how}`,
    })),
  ],
});

/** Of the victim's tenant, of an adversary's, of one that is registered in one world only, of none. */
function ofTenants(tail: string, body?: object, before = '/tenants'): readonly Probe[] {
  return ['acme', 'globex', 'zorg', 'nobody-has-this'].map((tenant) => ({
    path: () => `${before}/${tenant}${tail}`,
    ...(body === undefined ? {} : json(body)),
  }));
}

function ofAgreements(body?: object): readonly Probe[] {
  return ['acme', 'globex'].flatMap((tenant) =>
    ['hidden agreement', 'hidden agreement of names', 'revoked agreement'].map((agreement) => ({
      path: at(`/tenants/${tenant}/sharing/`, agreement),
      ...(body === undefined ? {} : json(body)),
    })),
  );
}

/** One that waits, one that has run, and none. */
function ofWorks(before: string, what: 'rule' | 'job' | 'workflow' | 'run', tail = '', body?: object): readonly Probe[] {
  return [`hidden ${what}`, `${what} of the victim`, 'none'].map((name) => ({
    path: at(before, name, tail),
    ...(body === undefined ? {} : json(body)),
  }));
}

const named = (name: string): object => ({ name, properties: { id: 'string' }, primary_key: 'id' });

/** What tools show of positions: cursors of the audit trail, and a receipt, which is of its entry in the log. */
const shownByTools: Readonly<Record<string, Compared>> = {
  get_audit_trail: { blank: /(\\?"next\\?":)(?:\\?"[^"\\]*\\?"|null)/g },
  erase_subject: bodyless,
};

/** What verbs are asked about: an item of others, one that is nobody's, one's own type; texts of others to find. */
const sought: readonly Known[] = [
  {
    'a memory': 'hidden memory',
    'another memory': 'hidden memory',
    'a recall': 'hidden recall',
    'a job': 'hidden job',
    'a run': 'hidden run',
  },
  {
    'a memory': 'none',
    'another memory': 'd1',
    'a recall': 'none',
    'a job': 'job of the victim',
    'a run': 'run of the victim',
  },
];

/** With ids of the stage in place of their names. */
function inStage(stage: Stage, ids: Known): Known {
  return Object.fromEntries(Object.entries(ids).map(([name, of]) => [name, stage.ids.get(of) ?? of])) as unknown as Known;
}

/** More that a verb may be asked than its example: what others hold, by every way to name it. */
const more: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
  recall: [
    { query: 'secret of the victim', top_k: 50, detailed: true, stability_days: 30 },
    { query: 'shared words', session_id: 'hidden session' },
    { query: 'shared words', as_of: '2024-01-01T00:00:03.000Z' },
    { query: 'open', type: 'Deal', min_confidence: 0.1 },
    { class_filter: 'hidden class' },
    { query: 'secret of the victim', type: 'DocumentChunk' },
  ],
  ingest_document: [{ content: 'mine', format: 'text', source_id: 'hidden-document' }],
  rag_store_elements: [{ elements: ['mine', 'too'], source_id: 'hidden-document' }],
  rag_store_answer: [
    { question: 'what', answer: 'mine', source_ids: ['hidden-document'] },
    { question: 'what', answer: 'mine', source_ids: ['hidden-document#1'] },
  ],
  search_knowledge: [
    { query: 'secret of the victim', limit: 50 },
    { query: 'shared words', source_filter: 'hidden-document', fuzzy: true },
  ],
  search_entities: [
    { query: 'secret of the victim', limit: 50 },
    { query: 'open', entity_type: 'Deal' },
    { query: 'x', entity_type: 'Dossier' },
  ],
  remember: [
    { content: 'shared words of mine', session_id: 'hidden session' },
    { content: 'x', type: 'Dossier' },
  ],
  forget: [{ id: 'hidden memory' }, { id: 'hidden memory', retain_days: -1 }, { id: 'd1', type: 'Deal', retain_days: 1 }],
  resolve: [{ id: 'x1', type: 'Deal' }],
  recognize: [{ id: 'x1', type: 'Deal' }],
  consolidate: [{ id: 'x2', type: 'Deal', content: 'mine' }],
  summarise: [{ topic: 'secret of the victim' }, { session_id: 'hidden session' }],
  justify: [{ id: 'hidden session' }, { id: 'hidden call' }, { id: 'hidden-document' }, { id: 'hidden-document#0' }],
  quarantine: [{ id: 'hidden session' }, { id: 'hidden-document' }],
  lift_quarantine: [{ id: 'hidden memory' }],
  episodes_in: [{}, { session_id: 'hidden session' }],
  query: [
    { sql: 'SELECT * FROM Deal' },
    { sql: 'SELECT * FROM ToolCall' },
    { sql: 'SELECT * FROM MemoryItem' },
    { sql: 'SELECT * FROM Quarantine' },
    { sql: 'SELECT * FROM Alert' },
  ],
  nl_query: [{ question: 'deals' }, { question: 'dossiers' }],
  hybrid_search: [
    { query: 'open', entity_type: 'Deal' },
    { query: 'p1 boss', entity_type: 'Party' },
    { query: 'shared words', entity_type: 'MemoryItem' },
  ],
  paths_between: [{ from: 'p1', to: 'p3' }],
  detect_communities: [{ entity_type: 'Party' }, { entity_type: 'Party', algo: 'label_propagation' }],
  rank_key_nodes: ['pagerank', 'betweenness', 'closeness', 'eigenvector'].map((metric) => ({ entity_type: 'Party', metric })),
  hub_authority: [{ entity_type: 'Party' }, { entity_type: 'Reports' }],
  find_scc: [{ entity_type: 'Party' }],
  screen_sanctions: [{ name: 'Bob Tomb', threshold: 0 }],
  geofence: [{ lat: 51.5, lon: -0.1, radius_m: 50_000 }],
  predict_links: [{ entity_type: 'Party', method: 'adamic_adar' }],
  get_entities: [{ entity_type: 'Deal', filters: { who: 'p1' } }, { entity_type: 'Dossier' }],
  aggregate_stats: [{ entity_type: 'Deal', group_by: 'note' }, { entity_type: 'Dossier' }],
  resolve_entity_identity: [{ identity: 'a1' }, { identity: 'x1' }, { identity: '+44 20 7946 0018' }, { identity: 'Bob Tomb' }],
  investigate_entity: [{ entity_id: 'a1' }, { entity_id: 'x1' }, { entity_id: 'Bob Tomb' }],
  get_case_summary: [{ case_id: 'k1' }, { case_id: 'x1' }],
  add_case_note: [
    { case_id: 'k1', text: 'mine' },
    { case_id: 'x1', text: 'mine' },
  ],
  similar_multimodal: [
    { entity_type: 'MemoryItem', text: 'secret of the victim' },
    { entity_type: 'Account', entity_id: 'x1' },
    { entity_type: 'Account', entity_id: 'a1' },
  ],
  find_in_social_corpus: [{ query: 'day' }],
  lookup_identity: [{ raw: 'ann@example.org' }, { raw: '+44 20 7946 0018' }],
  get_entity_profile: [{ entity_id: 'p1' }, { entity_id: 'x1' }, { entity_id: 'a1' }],
  get_timeline: [{ entity_id: 'p1' }, { entity_id: 'x1' }],
  find_connections: [{ entity_id: 'p1' }, { entity_id: 'x1' }],
  get_relationships: [{ entity_id: 'p1' }, { entity_id: 'x1' }],
  explain_policy: [{ entity_type: 'Deal' }, { entity_type: 'Dossier' }],
  erase_subject: [{ subject: 'p1', reason: 'asked to' }],
  job_status: [{ id: 'hidden task' }, { id: 'none' }],
  workflow_status: [{ run_id: 'none' }],
  run_workflow: [{ name: 'hidden workflow' }, { name: 'workflow of the victim' }],
  schedule_job: [{ name: 'hidden', run: { workflow: 'workflow of the victim' }, run_now: false }],
};

function inputsOf({ name, example }: Verb, stage: Stage): readonly Readonly<Record<string, unknown>>[] {
  const asked = [...sought.map((ids) => filled(example, inStage(stage, ids))), ...(more[name] ?? [])];
  return asked.map((input) => ({
    ...Object.fromEntries(Object.entries(input).map(([member, value]) => [member, stage.ids.get(String(value)) ?? value])),
    purpose: 'test',
  }));
}

/** As many probes as inputs; made for a stage when they are sent. */
function probesOf(
  verb: Verb,
  sent: (input: Readonly<Record<string, unknown>>) => { readonly path?: string; readonly body?: object },
): readonly Probe[] {
  const count = sought.length + (more[verb.name]?.length ?? 0);
  return Array.from({ length: count }, (_, i): Probe => {
    const of = (stage: Stage) => sent(inputsOf(verb, stage)[i]!);
    const { path, body } = sent({ ...verb.example, id: 'x' });
    const compared = shownByTools[verb.name];
    return {
      ...(compared && { compared }),
      ...(verb.name === 'metrics' && { storeWide: true }),
      ...(path !== undefined && { path: (stage: Stage) => of(stage).path! }),
      ...(body !== undefined && { body: (stage: Stage) => JSON.stringify(of(stage).body) }),
    };
  });
}

const verbRows: Readonly<Record<string, RouteRow>> = Object.fromEntries(
  verbs.flatMap((verb) =>
    (verb.http ?? []).map((route): [string, RouteRow] => [
      `${route.method} ${route.url}`,
      { probes: probesOf(verb, (input) => requestOf(route, input)) },
    ]),
  ),
);

const messages = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
const rpc = (method: string, params: object = {}): object => ({ jsonrpc: '2.0', id: 1, method, params });
/** Each tool; what has a route of its own is asked there, and here by its example. */
const flatCalls = tools.flatMap((verb) => {
  const probes = probesOf(verb, (input) => ({ body: { name: verb.name, arguments: input } }));
  return verb.http === undefined ? probes : probes.slice(0, 1);
});
const rpcCalls = tools
  .filter(({ name }) => ['recall', 'query', 'justify'].includes(name))
  .flatMap((verb) => probesOf(verb, (input) => ({ body: rpc('tools/call', { name: verb.name, arguments: input }) })));
const asSparql = { 'content-type': 'application/sparql-query' };
const asResults = { ...asSparql, accept: 'application/sparql-results+json' };

/** What adversaries send there beside the example of a route, or in its place. */
const own: Readonly<Record<string, Partial<RouteRow>>> = {
  ...verbRows,
  'POST /mcp/tools/call': { probes: flatCalls },
  'GET /mcp/sessions': { probes: [{}, to('/mcp/sessions?session_id=hidden%20session'), to('/mcp/sessions?limit=1')] },
  'POST /mcp': {
    probes: [
      ...[
        rpc('tools/list'),
        rpc('resources/list'),
        rpc('resources/read', { uri: 'annals://types/Dossier' }),
        rpc('prompts/list'),
      ].map((body) => ({
        ...json(body),
        headers: messages,
      })),
      ...rpcCalls.map((probe) => ({ ...probe, headers: messages })),
    ],
  },
  'POST /query': {
    probes: [
      json({ sql: 'SELECT * FROM Deal' }),
      json({ sql: 'SELECT' }),
      json({}),
      json({ sql: "ERASE SUBJECT 'p1' REASON 'asked' CERTIFY" }),
      // The second of each goes on from what the first came to.
      ...["GRAPH_PAGERANK('Party', 'Reports')", "CONNECTED_COMPONENTS('Party')", "LABEL_PROPAGATION('Party')"].flatMap((sql) =>
        [1, 2].map(() => json({ sql, consistency: 'eventual' })),
      ),
    ],
  },
  'POST /query/stream': { probes: [json({ sql: 'SELECT * FROM Deal' }), json({ sql: 'SELECT' })] },
  'POST /query/arrow': { probes: [json({ sql: 'SELECT * FROM Deal' }), json({ sql: 'SELECT' })] },
  'POST /search': { probes: searches.map(json) },
  'POST /multi-search': { probes: severalSearches.map(json) },
  'POST /graphql': { probes: documents.map(json) },
  'GET /sparql': { probes: patterns.map((query) => to(`/sparql?${new URLSearchParams({ query }).toString()}`)) },
  'POST /sparql': {
    probes: patterns.flatMap((query) => [
      { body: () => query, headers: asSparql },
      { body: () => query, headers: asResults },
    ]),
  },
  'GET /export': { probes: [to('/export?sql=SELECT%20*%20FROM%20Deal&format=csv'), to('/export')] },
  // An open stream has no end: what it tells is in the conversations.
  'GET /watch/stream': {
    probes: [
      { path: at('/watch/stream?subscription=', 'hidden watch') },
      to('/watch/stream?subscription=none'),
      to('/watch/stream?sql=SELECT%20nothing%20FROM%20Deal&purpose=test'),
      to('/watch/stream?sql=SELECT%20*%20FROM%20Vault&purpose=test'),
      to('/watch/stream?sql=SELECT%20*%20FROM%20LetterLink&purpose=test'),
    ],
  },
  'POST /lookup/register': {
    probes: [
      json({ name: 'hidden_names', path: 'names.csv', key: 'id', fields: ['name'] }),
      json({ name: 'hidden_names', path: 'hidden.csv', key: 'none', fields: ['name'] }),
    ],
  },
  'POST /ingest': ingest('/ingest'),
  'POST /ingest/auto': ingest('/ingest/auto'),
  'POST /ingest/bulk': ingest('/ingest/bulk'),
  'GET /ingest/tasks/:id': { probes: [{ path: at('/ingest/tasks/', 'hidden task') }, to('/ingest/tasks/none')] },
  // What it stores it stores later; `rag_store_elements` is asked the same at once.
  'POST /rag/ingest': { probes: [json({}), json({ chunks: [] }), json({ chunks: [{ page: 1 }], source_id: 7 })] },
  'GET /rag/ingest/:task_id': { probes: [{ path: at('/rag/ingest/', 'hidden task') }, to('/rag/ingest/none')] },
  'POST /tx/:id/commit': {
    probes: [
      { path: at('/tx/', 'hidden transaction', '/commit'), body: () => '' },
      { ...to('/tx/none/commit'), body: () => '' },
    ],
  },
  'POST /tx/:id/rollback': {
    probes: [
      { path: at('/tx/', 'hidden transaction', '/rollback'), body: () => '' },
      { ...to('/tx/none/rollback'), body: () => '' },
    ],
  },
  'POST /exhibits': { probes: [json({ title: 'mine' })], compared: positions },
  'POST /exhibits/:id/links': {
    probes: [
      { path: at('/exhibits/', 'hidden exhibit', '/links'), ...json({ act: 'note', text: 'mine' }) },
      { path: at('/exhibits/', 'exhibit of acme/eu', '/links'), ...json({ sql: 'SELECT * FROM Deal' }) },
      { path: at('/exhibits/', 'exhibit of globex', '/links'), ...json({ sql: 'SELECT * FROM Deal' }) },
    ],
    compared: positions,
  },
  'GET /exhibits/:id': {
    probes: [
      { path: at('/exhibits/', 'hidden exhibit') },
      { path: at('/exhibits/', 'exhibit of acme/eu') },
      { path: at('/exhibits/', 'exhibit of an earlier tenant') },
      { path: at('/exhibits/', 'exhibit of globex') },
      { path: at('/exhibits/', 'exhibit of null') },
    ],
    compared: positions,
  },
  'GET /types/:name': {
    probes: ['Deal', 'Dossier', 'Vault', 'LetterLink', 'Nothing', 'Hidden', 'Auto', 'SigintIntercept'].map((name) =>
      to(`/types/${name}`),
    ),
  },
  'POST /types': { probes: [json(named('Probe')), json(named('Deal')), json(named('SigintIntercept'))] },
  'POST /types/:name/schema': {
    probes: [{ ...to('/types/Probe/schema'), ...json({ properties: { more: 'integer' } }) }],
  },
  'POST /ontology/migrate': { probes: [json({ types: [named('Probe'), named('Probe2')] })] },
  'PATCH /types/:name/:id': {
    probes: ['x2', 'x3', 'x4', 'd1', 'none'].flatMap((key) => [
      { ...to(`/types/Deal/${key}`), ...json({ note: 'patched' }) },
      { ...to(`/types/Deal/${key}`), ...json({ amount: null }), headers: { 'if-match': '"1"' } },
      { ...to(`/types/Deal/${key}?when=2024-06-01`), ...json({ amount: 8 }) },
    ]),
  },
  'DELETE /types/:name/:id': {
    probes: ['x2', 'x3', 'x4', 'd1', 'none'].flatMap((key) => [to(`/types/Deal/${key}`), to(`/types/Deal/${key}?hard=true`)]),
  },
  'POST /v1/namespaces/:name/branch': {
    probes: [
      { ...to('/v1/namespaces/probe/branch'), ...json({ branch_from: 'main' }) },
      { ...to('/v1/namespaces/trial/branch'), ...json({ branch_from: 'main' }) },
      { ...to('/v1/namespaces/p2/branch'), ...json({ branch_from: 'none' }) },
    ],
  },
  'POST /schema/branches/:name': { probes: [{ ...to('/schema/branches/probe2'), ...json({ from: 'main' }) }] },
  'DELETE /schema/branches/:name': {
    probes: ['probe', 'probe2', 'hidden', 'none', 'main'].map((name) => to(`/schema/branches/${name}`)),
  },
  'GET /audit/count': {
    probes: [{}, to('/audit/count?principal=loader'), to('/audit/count?object_type=Vault'), to('/audit/count?action=query')],
    compared: positions,
  },
  'GET /audit/entries': {
    probes: [
      to('/audit/entries?limit=40'),
      to('/audit/entries?limit=40&since=2024-01-01T00:00:10Z'),
      to('/audit/entries?principal=loader&limit=5'),
      to('/audit/entries?object_type=Dossier'),
    ],
    compared: positions,
  },
  'GET /audit/proof': {
    probes: [
      ...[1, 40, 60, 999_999].map((leaf) => to(`/audit/proof?leaf=${leaf}`)),
      to('/audit/proof?position=70&row=x1'),
      to('/audit/proof?branch=trial'),
    ],
    // What is proven to an adversary at all is looked at by the canaries, in the conversations.
    compared: bodyless,
  },
  'GET /audit/log': { compared: positions },
  'GET /audit/log/checkpoint': { compared: bodyless },
  'GET /audit/log/tile/*': {
    probes: [to('/audit/log/tile/0/000.p/3'), to('/audit/log/tile/entries/000')],
    compared: bodyless,
  },
  'POST /tokens/self/rotate': {
    probes: [
      {
        after: (stage, { holder }, heard) => {
          if (heard.status < 300 && holder !== undefined) stage.tokens.set(holder, jsonOf(heard)['token'] as string);
        },
      },
    ],
  },
  'GET /tokens/self/audit': { probes: [to('/tokens/self/audit?limit=40')], compared: positions },
  'DELETE /tokens/self/:id': {
    probes: [
      { path: at('/tokens/self/', 'token of initech') },
      { path: at('/tokens/self/', 'token of leaver') },
      to('/tokens/self/none'),
    ],
  },
  'GET /status': { compared: { blank: /("port":)\d+/g } },
  'GET /metrics': { storeWide: true },
  'GET /metrics.json': { storeWide: true },

  'POST /rules': {
    probes: [
      json({ name: 'hidden', condition_sql: 'nothing = 1', object_type: 'Vault' }),
      json({ name: 'hidden', condition_sql: 'SELECT nothing FROM Deal' }),
    ],
  },
  'POST /rules/sigma': {
    probes: ['hidden rule', 'nobody-has-this'].map((rule) =>
      json({ rules: [{ title: 'hidden', correlation: { type: 'temporal', rules: [rule], 'group-by': ['a'], timespan: '1m' } }] }),
    ),
  },
  'GET /rules/:id': { probes: ofWorks('/rules/', 'rule') },
  'PUT /rules/:id': {
    probes: [
      ...ofWorks('/rules/', 'rule', '', { name: 'hidden', kind: 'enrich', object_type: 'Deal', field: 'note', keep: 'newest' }),
    ],
  },
  'POST /rules/:id/test': {
    probes: ofWorks('/rules/', 'rule', '/test', { from: 0, to: 1 }),
  },
  'DELETE /rules/:id': { probes: ofWorks('/rules/', 'rule') },

  'POST /jobs': {
    probes: [
      json({ name: 'hidden', run: { sql: 'SELECT nothing FROM Vault' } }),
      ...['hidden rule', 'rule of the victim'].map((rule) => ({
        body: (stage: Stage) => JSON.stringify({ name: 'hidden', run: { rules: [id(rule)(stage)] } }),
      })),
      ...['hidden job', 'job of the victim'].map((job) => ({
        body: (stage: Stage) => JSON.stringify({ name: 'hidden', run: { sql: 'SELECT 1' }, after: id(job)(stage) }),
      })),
      ...['hidden workflow', 'workflow of the victim'].map((workflow) => json({ name: 'hidden', run: { workflow } })),
    ],
  },
  ...Object.fromEntries(
    ['run', 'pause', 'resume', 'cancel'].map((act) => [`POST /jobs/:id/${act}`, { probes: ofWorks('/jobs/', 'job', `/${act}`) }]),
  ),
  'GET /jobs/:id': { probes: [...ofWorks('/jobs/', 'job'), { path: at('/jobs/', 'hidden task') }] },
  'POST /workflows': { probes: [json({ name: 'hidden', steps: [{ query: { sql: 'SELECT nothing FROM Vault' } }] })] },
  'DELETE /workflows/:id': { probes: ofWorks('/workflows/', 'workflow') },
  'POST /workflows/runs': {
    probes: ['hidden workflow', 'workflow of the victim', 'nobody-has-this'].map((name) => json({ name })),
  },
  'GET /workflows/runs/:id': { probes: ofWorks('/workflows/runs/', 'run') },
  ...Object.fromEntries(
    ['cancel', 'approve'].map((act) => [
      `POST /workflows/runs/:id/${act}`,
      { probes: ofWorks('/workflows/runs/', 'run', `/${act}`, {}) },
    ]),
  ),
  'PUT /types/:name/retention': {
    probes: ['Vault', 'nobody-has-this'].map((type) => ({
      ...to(`/types/${type}/retention`),
      ...json({ days: 36_500, by: 'valid_to', action: 'purge' }),
    })),
  },
  ...Object.fromEntries(
    ['GET', 'DELETE'].map((method) => [
      `${method} /types/:name/retention`,
      { probes: ['Vault', 'Deal', 'nobody-has-this'].map((type) => to(`/types/${type}/retention`)) },
    ]),
  ),
  'DELETE /jobs/:id': { probes: [...ofWorks('/jobs/', 'job'), { path: at('/jobs/', 'hidden task') }] },

  'POST /tenants': { probes: ['zorg', 'nobody-has-this'].map((tenant) => json({ id: tenant })) },
  'GET /tenants/:id': { probes: ofTenants('') },
  'PATCH /tenants/:id': { probes: ofTenants('', { name: 'mine' }) },
  'DELETE /tenants/:id': { probes: ofTenants('') },
  'POST /tenants/:id/suspend': { probes: ofTenants('/suspend', {}) },
  'POST /tenants/:id/reactivate': { probes: ofTenants('/reactivate', {}) },
  'GET /tenants/:id/usage': { probes: ofTenants('/usage') },
  'GET /tenants/:id/quota': { probes: ofTenants('/quota') },
  'PUT /tenants/:id/quota': { probes: ofTenants('/quota', { query_units: 1 }) },
  'GET /tenants/:id/config/search': { probes: ofTenants('/config/search') },
  'PUT /tenants/:id/config/search': {
    probes: [
      ...ofTenants('/config/search', { preset: 'x' }),
      ...ofTenants('/config/search', { config: { stop_words: ['zzz'] } }),
    ],
  },
  'GET /tenants/:id/members': { probes: ofTenants('/members') },
  'POST /tenants/:id/members': { probes: ofTenants('/members', { principal: 'x', role: 'tenant-admin' }) },
  'GET /tenants/:id/members/:pid': { probes: ofTenants('/members/loader') },
  'PATCH /tenants/:id/members/:pid': { probes: ofTenants('/members/loader', { role: 'tenant-admin' }) },
  'DELETE /tenants/:id/members/:pid': { probes: ofTenants('/members/loader') },
  'GET /tenants/:id/sharing': { probes: ofTenants('/sharing') },
  'POST /tenants/:id/sharing': { probes: ofTenants('/sharing', { assignee: 'globex', target: { types: ['Deal'] } }) },
  'GET /tenants/:id/sharing/:aid': { probes: ofAgreements() },
  'PATCH /tenants/:id/sharing/:aid': { probes: ofAgreements({ state: 'active' }) },
  'DELETE /tenants/:id/sharing/:aid': { probes: ofAgreements() },
  'POST /api/v1/tenants': { probes: ['zorg', 'nobody-has-this'].map((tenant) => json({ id: tenant })) },
  'GET /api/v1/tenants/:id': { probes: ofTenants('', undefined, '/api/v1/tenants') },
  'DELETE /api/v1/tenants/:id': { probes: ofTenants('', undefined, '/api/v1/tenants') },
  'POST /api/v1/tenants/:id/suspend': { probes: ofTenants('/suspend', {}, '/api/v1/tenants') },
  'POST /api/v1/tenants/:id/resume': { probes: ofTenants('/resume', {}, '/api/v1/tenants') },
  'GET /api/v1/tenants/:id/usage': { probes: ofTenants('/usage', undefined, '/api/v1/tenants') },
  'POST /api/v1/audit/export': {
    probes: [json({}), json({ principal: 'loader' }), { ...json({ format: 'csv' }), compared: bodyless }],
    compared: positions,
  },
};

/** Names no route of administration: those are asked of the data listener, which has none, and with data credentials. */
export function sentTo(route: string, probe: Probe, stage: Stage, adversary: Adversary, admin = false): Sent {
  const [method, url] = route.split(' ') as [string, string];
  const body = probe.body?.(stage);
  return {
    method,
    path: probe.path?.(stage) ?? url.replaceAll(/:\w+/g, 'acme'),
    headers: { ...adversary.headers(stage), ...probe.headers },
    ...(body === undefined ? {} : { body }),
    ...(admin ? { admin } : {}),
  };
}

/** What names in examples stand for. */
function idsIn(stage: Stage): Readonly<Record<string, string>> {
  const named = { 'a task': 'hidden task', 'a job': 'hidden task', 'a token': 'token of acme', 'another token': 'token of acme' };
  return {
    ...Object.fromEntries(Object.entries(named).map(([name, hidden]) => [name, id(hidden)(stage)])),
    'a type': 'Deal',
    'a tenant': 'acme',
    'another tenant': 'globex',
  };
}

function byExample(route: Route): Probe {
  const sent = (stage: Stage) => exampleRequest(route, idsIn(stage));
  const { headers = {}, body } = route.example ?? {};
  const hasBody = body !== undefined || ['POST', 'PUT', 'PATCH'].includes(route.method);
  return { path: (stage) => sent(stage).path, headers, ...(hasBody && { body: (stage: Stage) => sent(stage).body! }) };
}

/** A route without probes of its own is probed by its example. */
function rowsOf(routes: readonly Route[], later: readonly Route[]): Readonly<Record<string, RouteRow>> {
  return Object.fromEntries(
    routes.map((route): [string, RouteRow] => {
      const name = `${route.method} ${route.path}`;
      return [
        name,
        {
          probes: [byExample(route)],
          ...(route.access === 'probe' && { open: true }),
          ...(later.includes(route) && { later: true }),
          ...own[name],
        },
      ];
    }),
  );
}

/** They let in who holds a session of a page, and nobody by a credential. */
const sessionRow = ({ method, path }: Route): readonly [string, RouteRow] => {
  const body = ['POST', 'PUT', 'PATCH'].includes(method) && { body: () => '{}', headers: { 'content-type': 'application/json' } };
  const asked = path.replace(':name', 'shell.js').replace('*', 'types');
  return [`${method} ${path}`, { probes: [{ path: () => asked, ...body }], open: true }];
};
const sessions = consoleSessionRoutes.map(sessionRow);
export const sessionRows: ReadonlySet<string> = new Set(sessions.map(([name]) => name));

const ofData = rowsOf(dataRoutes, laterRoutes);
for (const name of Object.keys(own)) assert(ofData[name] !== undefined, `the server has the route ${name}`);
export const dataRows: Readonly<Record<string, RouteRow>> = {
  ...ofData,
  ...Object.fromEntries(workbenchRoutes.map(sessionRow)),
};

/** Asked with data credentials: of the data listener, which has none of them, and of the admin listener, which lets nobody in. */
export const adminRows: Readonly<Record<string, RouteRow>> = { ...rowsOf(adminRoutes, []), ...Object.fromEntries(sessions) };
