/**
 * One row for every route that the running server registers: what an adversary sends there to learn of what is hidden. A
 * route without a row fails the matrix, and so does a row that no route answers.
 */
import type { Adversary } from './adversaries.ts';
import type { Compared } from './compare.ts';
import type { Heard, Sent } from './lab.ts';
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

const read: RouteRow = { probes: [{}] };
const later = (...probes: readonly Probe[]): RouteRow => ({ probes: probes.length === 0 ? [{}] : probes, later: true });

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

const named = (name: string): object => ({ name, properties: { id: 'string' }, primary_key: 'id' });

export const dataRows: Readonly<Record<string, RouteRow>> = {
  'POST /query': {
    probes: [
      json({ sql: 'SELECT * FROM Deal' }),
      json({ sql: 'SELECT' }),
      json({}),
      json({ sql: "ERASE SUBJECT 'p1' REASON 'asked' CERTIFY" }),
    ],
  },
  'POST /query/stream': { probes: [json({ sql: 'SELECT * FROM Deal' }), json({ sql: 'SELECT' })] },
  'POST /query/arrow': { probes: [json({ sql: 'SELECT * FROM Deal' }), json({ sql: 'SELECT' })] },
  'GET /export': { probes: [to('/export?sql=SELECT%20*%20FROM%20Deal&format=csv'), to('/export')] },
  // An open stream has no end: what it tells is in the conversations.
  'GET /watch/stream': {
    probes: [
      { path: at('/watch/stream?subscription=', 'hidden watch') },
      to('/watch/stream?subscription=none'),
      to('/watch/stream?sql=SELECT%20nothing%20FROM%20Deal&purpose=test'),
      to('/watch/stream?sql=SELECT%20*%20FROM%20Vault&purpose=test'),
    ],
  },
  'POST /lookup/register': {
    probes: [
      json({ name: 'hidden_names', path: 'names.csv', key: 'id', fields: ['name'] }),
      json({ name: 'hidden_names', path: 'hidden.csv', key: 'none', fields: ['name'] }),
    ],
  },
  'GET /lookup': read,
  'POST /ingest': ingest('/ingest'),
  'POST /ingest/auto': ingest('/ingest/auto'),
  'POST /ingest/bulk': ingest('/ingest/bulk'),
  'GET /ingest/tasks/:id': { probes: [{ path: at('/ingest/tasks/', 'hidden task') }, to('/ingest/tasks/none')] },
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
  'GET /types': read,
  'GET /types/:name': {
    probes: ['Deal', 'Dossier', 'Vault', 'Nothing', 'Hidden', 'Auto', 'SigintIntercept'].map((name) => to(`/types/${name}`)),
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
  'GET /schema/branches': read,
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
  'GET /audit/log': { ...read, compared: positions },
  'GET /audit/log/checkpoint': { ...read, compared: bodyless },
  'GET /audit/log/tile/*': {
    probes: [to('/audit/log/tile/0/000.p/3'), to('/audit/log/tile/entries/000')],
    compared: bodyless,
  },
  'GET /tokens/self': read,
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
  'GET /health': { ...read, open: true },
  'GET /health/live': { ...read, open: true },
  'GET /health/ready': { ...read, open: true },
  'GET /version': { ...read, open: true },
  'GET /status': { ...read, compared: { blank: /("port":)\d+/g } },
  'GET /metrics': { ...read, storeWide: true },
  'GET /metrics.json': { ...read, storeWide: true },
  'GET /config': read,
  'GET /openapi.json': read,
  'GET /specs': read,

  'POST /search': later(json({ query: 'open', type: 'Deal' })),
  'POST /multi-search': later(json({ queries: [{ query: 'open', type: 'Deal' }] })),
  'POST /nl_query': later(json({ question: 'deals' })),
  'POST /rag/ingest': later(json({})),
  'POST /ingest/media': later(json({})),
  'GET /rag/ingest/:task_id': later({ path: at('/rag/ingest/', 'hidden task') }),
  'POST /memory/remember': later(json({ content: 'x' })),
  'POST /memory/remember/batch': later(json({ items: [] })),
  'POST /memory/consolidate': later(json({ id: 'x1' })),
  'POST /memory/summarise': later(json({ topic: 'x' })),
  'POST /memory/associate': later(json({ from_id: 'x1', to_id: 'x2' })),
  'POST /memory/associate/batch': later(json({})),
  'GET /memory/recall': later(to('/memory/recall?q=open')),
  'POST /memory/recall': later(json({ q: 'open' })),
  'GET /memory/recognize/:id': later(to('/memory/recognize/x1')),
  'GET /memory/episodes': later(),
  'GET /memory/justify/:id': later(to('/memory/justify/x1')),
  'GET /memory/resolve/:id': later(to('/memory/resolve/x1')),
  'DELETE /memory/forget/:id': {
    probes: ['', '?purpose=test&retain_days=1', '?purpose=test&retain_days=-1', '?purpose=test'].flatMap((query) => [
      to(`/memory/forget/m1${query}`),
      to(`/memory/forget/d1${query}`),
    ]),
  },
  'POST /mcp': later(json({})),
  'POST /mcp/initialize': later(json({})),
  'POST /mcp/tools/call': later(json({ name: 'query', arguments: { sql: 'SELECT * FROM Deal' } })),
  'GET /mcp/tools': later(),
  'GET /mcp/sessions': later(),
  'POST /graphql': later(json({ query: '{ Deal { id } }' })),
  'GET /sparql': later(to('/sparql?query=SELECT')),
  'POST /sparql': later(json({})),
  'GET /rules': later(),
  'POST /rules': later(json({})),
  'POST /rules/sigma': later(json({})),
  'GET /jobs': read,
  'GET /jobs/:id': { probes: [{ path: at('/jobs/', 'hidden task') }, to('/jobs/none')] },
  'DELETE /jobs/:id': { probes: [{ path: at('/jobs/', 'hidden task') }, to('/jobs/none')] },
  'GET /cluster/nodes': later(),
  'GET /cluster/topology': later(),
  'POST /cluster/rebalance': later(json({})),
  'POST /cluster/drain/:node': later(to('/cluster/drain/x')),

  'GET /tenants': read,
  'POST /tenants': { probes: ['zorg', 'nobody-has-this'].map((tenant) => json({ id: tenant })) },
  'GET /tenants/me': read,
  'GET /tenants/:id': { probes: ofTenants('') },
  'PATCH /tenants/:id': { probes: ofTenants('', { name: 'mine' }) },
  'DELETE /tenants/:id': { probes: ofTenants('') },
  'POST /tenants/:id/suspend': { probes: ofTenants('/suspend', {}) },
  'POST /tenants/:id/reactivate': { probes: ofTenants('/reactivate', {}) },
  'GET /tenants/:id/usage': { probes: ofTenants('/usage') },
  'GET /tenants/:id/quota': { probes: ofTenants('/quota') },
  'PUT /tenants/:id/quota': { probes: ofTenants('/quota', { query_units: 1 }) },
  'GET /tenants/:id/config/search': { probes: ofTenants('/config/search') },
  'PUT /tenants/:id/config/search': { probes: ofTenants('/config/search', { preset: 'x' }) },
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
  'GET /api/v1/tenants': read,
  'POST /api/v1/tenants': { probes: ['zorg', 'nobody-has-this'].map((tenant) => json({ id: tenant })) },
  'GET /api/v1/tenants/:id': { probes: ofTenants('', undefined, '/api/v1/tenants') },
  'DELETE /api/v1/tenants/:id': { probes: ofTenants('', undefined, '/api/v1/tenants') },
  'POST /api/v1/tenants/:id/suspend': { probes: ofTenants('/suspend', {}, '/api/v1/tenants') },
  'POST /api/v1/tenants/:id/resume': { probes: ofTenants('/resume', {}, '/api/v1/tenants') },
  'GET /api/v1/tenants/:id/usage': { probes: ofTenants('/usage', undefined, '/api/v1/tenants') },
  'GET /api/v1/tenants/usage/summary': read,
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

/** Asked with data credentials: of the data listener, which has none of them, and of the admin listener, which lets nobody in. */
export const adminRows: Readonly<Record<string, RouteRow>> = {
  'POST /admin/tokens': { probes: [json({ tenant_id: 'acme', principal: 'x' })] },
  'GET /admin/tokens': read,
  'DELETE /admin/tokens/:id': { probes: [{ path: at('/admin/tokens/', 'token of acme') }] },
  'POST /admin/tokens/:id/rotate': { probes: [{ path: at('/admin/tokens/', 'token of acme', '/rotate') }] },
  'GET /admin/tokens/audit': read,
  'GET /admin/audit/count': read,
  'GET /admin/audit/entries': read,
  'POST /admin/audit/export': { probes: [json({})] },
  'GET /admin/jobs': read,
  'GET /admin/jobs/:id': { probes: [{ path: at('/admin/jobs/', 'hidden task') }] },
  'DELETE /admin/jobs/:id': { probes: [{ path: at('/admin/jobs/', 'hidden task') }] },
  'POST /admin/compact': { probes: [json({})] },
  'POST /admin/backup': { probes: [json({})] },
  'POST /admin/restore': { probes: [json({ backup: '00000000-0', target_dir: '/restored' })] },
  'POST /admin/reindex': { probes: [json({})] },
  'POST /admin/rotate-dek': { probes: [json({})] },
  'GET /admin/backups': read,
  'GET /admin/system': read,
  'GET /admin/dashboard': read,
  'GET /admin/console': read,
  'GET /admin/policies': read,
  'GET /admin/policies/:id': { probes: [to('/admin/policies/p')] },
  'PUT /admin/policies/:id': {
    probes: [{ ...to('/admin/policies/p'), ...json({ policy: 'permit(principal, action, resource);' }) }],
  },
  'DELETE /admin/policies/:id': { probes: [to('/admin/policies/p')] },
  'GET /platform/tenants': read,
  'GET /platform/license': read,
  'GET /platform/usage': read,
  'GET /platform/tenants/:id': { probes: ofTenants('', undefined, '/platform/tenants') },
  'DELETE /platform/tenants/:id': { probes: ofTenants('', undefined, '/platform/tenants') },
  'PATCH /platform/tenants/:id/tier': { probes: ofTenants('/tier', { tier: 'free' }, '/platform/tenants') },
  'POST /platform/tenants/:id/suspend': { probes: ofTenants('/suspend', {}, '/platform/tenants') },
  'POST /platform/tenants/:id/reactivate': { probes: ofTenants('/reactivate', {}, '/platform/tenants') },
};
