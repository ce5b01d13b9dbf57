/** The demonstration: what it holds comes in through the doors, as anybody's rows do. */
import { readFileSync } from 'node:fs';
import type { HttpDoor } from '../doors/http/server.ts';
import { packageRoot } from '../package-root.ts';
import type { Service } from '../service.ts';
import { demoClaims, demoMemories, demoPolicies, demoStories, demoVoyages } from './demo-rows.ts';
import { operator } from './local-store.ts';
import { type Remote, request } from './remote-server.ts';
import { mintToken } from './token.ts';

const demoFilings = [
  '1-opening-2024-01-15.ndjson',
  '2-changes-2024-02-12.csv',
  '3-late-notices-2024-04-03.ndjson',
  '4-corrections-2024-06-20.csv',
];

/** Fills an empty store of the profile free; the link that opens the console on it, or null where there is nothing to fill. */
export async function openDemo(service: Service, door: HttpDoor): Promise<string | null> {
  const { settings } = service;
  if (settings.SERVICE_PROFILE !== 'free' || !settings.SERVICE_DEMO_MODE) return null;
  const adminCredential =
    settings.SERVICE_ADMIN_TOKEN === null ? {} : { administrator: `Bearer ${settings.SERVICE_ADMIN_TOKEN}` };
  const isEmpty = service.store.projections.directory.size === 0;
  if (!isEmpty && settings.SERVICE_ADMIN_TOKEN === null) return null;
  if (!isEmpty) return door.consoleLink(adminCredential);
  const curatorToken = await mintToken(service, { principal: 'curator' });
  await mintToken(service, { principal: 'clerk', roles: ['clerk'] });
  const harbourAdminToken = await mintToken(service, { principal: 'ann', tenant: 'harbour', roles: ['tenant-admin'] });
  await mintToken(service, { principal: 'gus', tenant: 'tern', roles: ['tenant-admin'] });
  await fillDemoStore(service, {
    url: door.dataUrl,
    headers: { authorization: `Bearer ${curatorToken}`, 'x-service-purpose': 'analytics' },
  });
  const sharingOffer = { assignee: 'tern', target: { types: ['Voyage'], where: 'resource.cargo == "cork"' } };
  const harbourServer = { url: door.dataUrl, headers: { authorization: `Bearer ${harbourAdminToken}` } };
  await request(harbourServer, 'POST', '/tenants/harbour/sharing', [], JSON.stringify(sharingOffer));
  return door.consoleLink({ ...adminCredential, token: curatorToken });
}

const readDemoFixture = (path: string): string => readFileSync(new URL(`fixtures/${path}`, packageRoot), 'utf8');

interface IngestedDemoRows {
  readonly system_from: bigint | number;
}

async function fillDemoStore(service: Service, curator: Remote): Promise<void> {
  const postJson = (demoRoute: string, demoBody: object): Promise<unknown> =>
    request(curator, 'POST', demoRoute, [], JSON.stringify(demoBody));
  const ingestDemo = (
    ingestRoute: string,
    demoText: string,
    contentType = 'application/x-ndjson',
    demoServer = curator,
  ): Promise<IngestedDemoRows> =>
    request(demoServer, 'POST', ingestRoute, ['system_from'], demoText, contentType) as Promise<IngestedDemoRows>;
  const ndjsonLines = (demoRows: readonly object[]): string => demoRows.map((demoRow) => `${JSON.stringify(demoRow)}\n`).join('');

  const filingInstants: bigint[] = [];
  for (const demoFiling of demoFilings) {
    const filingContentType = demoFiling.endsWith('.csv') ? 'text/csv' : 'application/x-ndjson';
    const filingSource = `source=${encodeURIComponent(`filing ${demoFiling}`)}&method=filing`;
    const { system_from: filingInstant } = await ingestDemo(
      `/ingest/auto?object_type=Cover&primary_key=id&${filingSource}`,
      readDemoFixture(`ledger/${demoFiling}`),
      filingContentType,
    );
    filingInstants.push(BigInt(filingInstant));
  }
  await ingestDemo('/ingest/auto?object_type=Airport&primary_key=id', readDemoFixture('flights/airports.ndjson'));
  const { system_from: routesInstant } = await ingestDemo(
    '/ingest/auto?object_type=Route&primary_key=id',
    readDemoFixture('flights/routes.ndjson'),
  );
  for (const airline of ['BA', 'QF', 'SQ']) await request(curator, 'DELETE', `/types/Route/${airline}-SIN-SYD`, []);

  const textProperty = { type: 'string' };
  await postJson('/types', {
    name: 'Claim',
    primary_key: 'id',
    properties: {
      id: textProperty,
      vessel: textProperty,
      claimant: textProperty,
      amount: { type: 'integer' },
      iban: { ...textProperty, masked: true },
    },
  });
  await ingestDemo('/ingest?object_type=Claim', ndjsonLines(demoClaims));
  for (const [tenant, voyageRows] of Object.entries(demoVoyages)) {
    const tenantServer = { ...curator, headers: { ...curator.headers, 'x-organization-id': tenant } };
    await ingestDemo(
      '/ingest/auto?object_type=Voyage&primary_key=id',
      ndjsonLines(voyageRows),
      'application/x-ndjson',
      tenantServer,
    );
  }

  await postJson('/query', {
    sql: "CREATE VIEW in_force AS SELECT vessel, insurer, sum_insured FROM Cover WHERE status = 'covered'",
  });

  let firstMemoryId = '';
  for (const demoMemory of demoMemories) {
    const { id } = parseToolReply(await postJson('/memory/remember', demoMemory)) as { id: string };
    firstMemoryId ||= id;
  }
  await postJson('/memory/consolidate', {
    id: firstMemoryId,
    content: 'The Aurelia is covered by Baltic Indemnity since 1 March 2024',
    confidence: 0.95,
  });

  await postJson('/v1/namespaces/what-if/branch', { branch_from: 'main' });
  const whatIfServer = { ...curator, headers: { ...curator.headers, 'x-service-branch': 'what-if' } };
  await ingestDemo(
    '/ingest?object_type=Cover',
    ndjsonLines([
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
    whatIfServer,
  );

  const { exhibit_id: exhibit } = (await postJson('/exhibits', { title: 'Claim of the Aurelia' })) as { exhibit_id: string };
  const collisionQuery =
    "SELECT insurer, status FROM Cover AS OF '2024-03-10' WHERE id = 'aurelia' AND system_to = 9223372036854775807";
  await postJson(`/exhibits/${exhibit}/links`, { sql: collisionQuery });

  await installDemoPolicies(service);
  await ingestDemo(
    '/ingest/auto?object_type=Story&primary_key=id',
    ndjsonLines(demoStories({ believed: filingInstants, routed: BigInt(routesInstant), exhibit })),
  );
}

function parseToolReply(reply: unknown): unknown {
  return JSON.parse((reply as { readonly content: readonly [{ readonly text: string }] }).content[0].text);
}

/** As `annals token mint` writes: by the operator, through the gate. */
async function installDemoPolicies(service: Service): Promise<void> {
  for (const [id, policyText] of Object.entries(demoPolicies)) {
    const policyInvocation = { action: 'administer', purpose: null, correlationId: service.ids.next() } as const;
    await service.gate.invoke(operator(null), policyInvocation, (openInvocation) =>
      openInvocation.submit({ kind: 'put-policy', id, text: policyText }, { sync: true }),
    );
  }
}
