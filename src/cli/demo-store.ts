/** The demonstration: what it holds comes in through the doors, as anybody's rows do. */
import { readFileSync } from 'node:fs';
import type { HttpDoor } from '../doors/http/server.ts';
import { packageRoot } from '../package-root.ts';
import type { Service } from '../service.ts';
import { demoClaims, demoMemories, demoPolicies, demoStories, demoVoyages } from './demo-rows.ts';
import { operator } from './local-store.ts';
import { type Remote, request } from './remote-server.ts';
import { mintToken } from './token.ts';

const filings = [
  '1-opening-2024-01-15.ndjson',
  '2-changes-2024-02-12.csv',
  '3-late-notices-2024-04-03.ndjson',
  '4-corrections-2024-06-20.csv',
];

/** Fills an empty store of the profile free; the link that opens the console on it, or null where there is nothing to fill. */
export async function openDemo(service: Service, door: HttpDoor): Promise<string | null> {
  const { settings } = service;
  if (settings.SERVICE_PROFILE !== 'free' || !settings.SERVICE_DEMO_MODE) return null;
  const administrator = settings.SERVICE_ADMIN_TOKEN === null ? {} : { administrator: `Bearer ${settings.SERVICE_ADMIN_TOKEN}` };
  const isEmpty = service.store.projections.directory.size === 0;
  if (!isEmpty && settings.SERVICE_ADMIN_TOKEN === null) return null;
  if (!isEmpty) return door.consoleLink(administrator);
  const token = await mintToken(service, { principal: 'curator' });
  await mintToken(service, { principal: 'clerk', roles: ['clerk'] });
  const ann = await mintToken(service, { principal: 'ann', tenant: 'harbour', roles: ['tenant-admin'] });
  await mintToken(service, { principal: 'gus', tenant: 'tern', roles: ['tenant-admin'] });
  await fill(service, { url: door.dataUrl, headers: { authorization: `Bearer ${token}`, 'x-service-purpose': 'analytics' } });
  const offer = { assignee: 'tern', target: { types: ['Voyage'], where: 'resource.cargo == "cork"' } };
  const owner = { url: door.dataUrl, headers: { authorization: `Bearer ${ann}` } };
  await request(owner, 'POST', '/tenants/harbour/sharing', [], JSON.stringify(offer));
  return door.consoleLink({ ...administrator, token });
}

const fixture = (path: string): string => readFileSync(new URL(`fixtures/${path}`, packageRoot), 'utf8');

interface Ingested {
  readonly system_from: bigint | number;
}

async function fill(service: Service, curator: Remote): Promise<void> {
  const post = (path: string, body: object): Promise<unknown> => request(curator, 'POST', path, [], JSON.stringify(body));
  const write = (path: string, text: string, type = 'application/x-ndjson', remote = curator): Promise<Ingested> =>
    request(remote, 'POST', path, ['system_from'], text, type) as Promise<Ingested>;
  const lines = (rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

  const believed: bigint[] = [];
  for (const file of filings) {
    const type = file.endsWith('.csv') ? 'text/csv' : 'application/x-ndjson';
    const source = `source=${encodeURIComponent(`filing ${file}`)}&method=filing`;
    const { system_from: from } = await write(
      `/ingest/auto?object_type=Cover&primary_key=id&${source}`,
      fixture(`ledger/${file}`),
      type,
    );
    believed.push(BigInt(from));
  }
  await write('/ingest/auto?object_type=Airport&primary_key=id', fixture('flights/airports.ndjson'));
  const { system_from: routed } = await write('/ingest/auto?object_type=Route&primary_key=id', fixture('flights/routes.ndjson'));
  for (const line of ['BA', 'QF', 'SQ']) await request(curator, 'DELETE', `/types/Route/${line}-SIN-SYD`, []);

  const text = { type: 'string' };
  await post('/types', {
    name: 'Claim',
    primary_key: 'id',
    properties: { id: text, vessel: text, claimant: text, amount: { type: 'integer' }, iban: { ...text, masked: true } },
  });
  await write('/ingest?object_type=Claim', lines(demoClaims));
  for (const [tenant, rows] of Object.entries(demoVoyages)) {
    const remote = { ...curator, headers: { ...curator.headers, 'x-organization-id': tenant } };
    await write('/ingest/auto?object_type=Voyage&primary_key=id', lines(rows), 'application/x-ndjson', remote);
  }

  await post('/query', {
    sql: "CREATE VIEW in_force AS SELECT vessel, insurer, sum_insured FROM Cover WHERE status = 'covered'",
  });

  let first = '';
  for (const memory of demoMemories) {
    const { id } = toolReply(await post('/memory/remember', memory)) as { id: string };
    first ||= id;
  }
  await post('/memory/consolidate', {
    id: first,
    content: 'The Aurelia is covered by Baltic Indemnity since 1 March 2024',
    confidence: 0.95,
  });

  await post('/v1/namespaces/what-if/branch', { branch_from: 'main' });
  const branch = { ...curator, headers: { ...curator.headers, 'x-service-branch': 'what-if' } };
  await write(
    '/ingest?object_type=Cover',
    lines([
      {
        id: 'aurelia',
        vessel: 'Aurelia',
        flag: 'Norway',
        insurer: 'Tern Marine',
        status: 'covered',
        sum_insured: 14_000_000,
        premium_rate: 0.7,
        filed: '2024-07-01',
        valid_from: '2024-07-01',
      },
    ]),
    'application/x-ndjson',
    branch,
  );

  const { exhibit_id: exhibit } = (await post('/exhibits', { title: 'Claim of the Aurelia' })) as { exhibit_id: string };
  const collision =
    "SELECT insurer, status FROM Cover AS OF '2024-03-10' WHERE id = 'aurelia' AND system_to = 9223372036854775807";
  await post(`/exhibits/${exhibit}/links`, { sql: collision });

  await installPolicies(service);
  await write('/ingest/auto?object_type=Story&primary_key=id', lines(demoStories({ believed, routed: BigInt(routed), exhibit })));
}

function toolReply(reply: unknown): unknown {
  return JSON.parse((reply as { readonly content: readonly [{ readonly text: string }] }).content[0].text);
}

/** As `annals token mint` writes: by the operator, through the gate. */
async function installPolicies(service: Service): Promise<void> {
  for (const [id, text] of Object.entries(demoPolicies)) {
    const invocation = { action: 'administer', purpose: null, correlationId: service.ids.next() } as const;
    await service.gate.invoke(operator(null), invocation, (open) =>
      open.submit({ kind: 'put-policy', id, text }, { sync: true }),
    );
  }
}
