/**
 * Differences that are no rows: in the first world other tenants define, evolve, guard, mask, fork, view and share under the
 * names that everybody uses, and under names of their own. In the second they do nothing.
 */
import type { Difference } from './differences.ts';
import type { Heard } from './lab.ts';
import { type Holder, jsonOf, type Stage, victimPath } from './stage.ts';

const hides = 'rows of the victim' as const;
const secret = (stage: Stage, where: string): string => stage.canaries.text(hides, where);

/** Requests of one tenant, which are answered or refused as stated. */
function acting(stage: Stage, holder: Holder) {
  const attempt = (method: string, path: string, body?: object, branch = 'main'): Promise<Heard> =>
    stage.lab.ask({
      method,
      path,
      headers: { ...stage.headers(holder), 'x-service-branch': branch },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const send = async (method: string, path: string, body?: object, branch = 'main', refused = 0): Promise<void> => {
    const heard = await attempt(method, path, body, branch);
    const isExpected = refused === 0 ? heard.status < 300 : heard.status === refused;
    if (!isExpected) throw new Error(`${holder}: ${method} ${path}: ${heard.status} ${heard.body.toString().slice(0, 500)}`);
  };
  return {
    attempt,
    send,
    refused: (status: number, method: string, path: string, body?: object) => send(method, path, body, 'main', status),
    sql: (sql: string, branch = 'main') => send('POST', '/query', { sql }, branch),
    type: (name: string, properties: object, more: object = {}, branch = 'main') =>
      send('POST', '/types', { name, properties: { id: 'string', ...properties }, primary_key: 'id', ...more }, branch),
    evolve: (name: string, change: object, branch = 'main') =>
      send('POST', `/types/${name}/schema`, { properties: {}, ...change }, branch),
    put: (type: string, row: object, branch = 'main') => send('POST', `/ingest?object_type=${type}`, row, branch),
  };
}

const lookup = (name: string) => ({ name, path: 'hidden.csv', key: 'id', fields: ['name'] });

const inFirst =
  (run: (stage: Stage) => Promise<void>): Difference['run'] =>
  async (stage, side) => {
    if (side === 'first') await run(stage);
  };

export const changes: readonly Difference[] = [
  {
    name: 'others registered the names of everybody with other columns, or did not',
    hides,
    run: inFirst(async (stage) => {
      const { type, evolve, put, refused, send } = acting(stage, 'oscorp');
      const column = secret(stage, 'a column');
      await type('Deal', { amount: 'string', extra: 'integer', [column]: 'string' });
      await type('Party', { name: { type: 'string', masked: true }, score: 'string' }, { protected: true });
      await type('Dossier', { size: { type: 'string', required: true }, extra: 'string' }, { access_scope: true });
      await type('Card', { pan: { type: 'integer', subject: true } });
      await put('Deal', { id: 'd1', amount: secret(stage, 'an amount of other columns'), extra: 7, [column]: 'x' });
      await put('Card', { id: 'k1', pan: 4 });
      for (const name of ['Probe', 'Probe2', 'Mine']) await type(name, { [secret(stage, `a column of ${name}`)]: 'json' });
      await type('Hidden', { [secret(stage, 'a column of a hidden type')]: 'string' });
      await type(secret(stage, 'a type'), {}, { protected: true });
      await evolve('Deal', { protected: true, properties: { more: 'timestamp' } });
      await evolve('Probe', { access_scope: true });
      await send('POST', '/ontology/migrate', {
        types: [
          { name: 'Deal', properties: { moreStill: 'string' } },
          { name: 'Hidden2', properties: { id: 'string' } },
        ],
      });
      await refused(403, 'POST', '/types/Deal/schema', { properties: {}, protected: false });
      await refused(409, 'POST', '/types', { name: 'Deal', properties: { id: 'string' }, primary_key: 'id' });
    }),
  },
  {
    name: 'others evolved and masked what everybody inherits, or did not',
    hides,
    run: inFirst(async (stage) => {
      const { evolve, send, put, refused } = acting(stage, 'initech');
      await evolve('Deal', { properties: { extra: 'string', who: { type: 'string', masked: true }, amount: 'number' } });
      await put('Deal', { id: 'd1', who: 'p1', amount: 1.5, extra: secret(stage, 'a cell of a new column') });
      await evolve('Party', { protected: true });
      await evolve('Clue', { access_scope: true, properties: { [secret(stage, 'a new column')]: 'integer' } });
      await send('POST', '/ontology/migrate', { types: [{ name: 'Dossier', properties: { extra: 'json' } }] });
      for (const name of ['Auto', 'Hidden'])
        await send('POST', `/ingest/auto?object_type=${name}`, { id: 'a1', [secret(stage, `a key of ${name}`)]: 1 });
      await send('POST', '/ingest/auto?object_type=Auto', { id: 'a2', another: 'x' });
      await refused(403, 'POST', '/types/Party/schema', { properties: {}, protected: false });
    }),
  },
  {
    name: 'others have branches, views and lookup tables of these names, or have not',
    hides,
    run: inFirst(async (stage) => {
      const { send, sql, type, evolve, put, refused } = acting(stage, 'oscorp');
      const [branch, view] = [secret(stage, 'a branch'), secret(stage, 'the name of a view')];
      for (const name of ['probe', 'hidden', 'mine', branch])
        await send('POST', `/v1/namespaces/${name}/branch`, { branch_from: 'main' });
      await send('POST', '/schema/branches/probe2', { from: 'trial' });
      await type('Hidden3', { [secret(stage, 'a column of a branch')]: 'string' }, {}, 'hidden');
      await evolve('Card', { protected: true, properties: { extra: 'string' } }, 'trial');
      await put('Hidden3', { id: 'h1' }, 'hidden');
      await send('DELETE', '/schema/branches/probe');
      await send('POST', '/v1/namespaces/probe/branch', { branch_from: 'hidden' });
      const text = secret(stage, 'a view of a branch');
      for (const name of ['by_note', 'mine_view', 'hidden_view', view])
        await sql(
          `CREATE MATERIALIZED VIEW ${name} AS SELECT id FROM Card WHERE id != '${text}' REFRESH INCREMENTAL EVERY 86400`,
        );
      await sql('DROP MATERIALIZED VIEW by_note');
      for (const name of ['names', 'mine_names', 'hidden_names', secret(stage, 'the name of a lookup table')])
        await send('POST', '/lookup/register', lookup(name));
      await sql('DROP LOOKUP names');
      // What is not theirs stays.
      await refused(403, 'DELETE', '/schema/branches/trial');
      await refused(404, 'DELETE', '/schema/branches/none');
      await refused(404, 'POST', '/query', { sql: 'DROP MATERIALIZED VIEW by_note' });
      await refused(404, 'POST', '/query', { sql: 'DROP LOOKUP names' });
      await refused(404, 'POST', `/exhibits/${stage.ids.get(`exhibit of ${victimPath}`)}/links`, { act: 'note', text });
    }),
  },
  {
    name: 'others set what their searches start from, or did not',
    hides,
    governed: true,
    run: inFirst(async (stage) => {
      const config = {
        stop_words: ['open'],
        synonyms: [['open', 'done']],
        field_weights: { Deal: { note: 9 } },
        language: 'german',
      };
      await acting(stage, 'oscorp admin').send('PUT', '/tenants/oscorp/config/search', { config });
    }),
  },
  {
    name: 'others proposed, made and ended agreements among themselves, or did not',
    hides,
    governed: true,
    run: inFirst(async (stage) => {
      const [giver, taker] = [acting(stage, 'oscorp admin'), acting(stage, 'osborn admin')];
      const propose = async (terms: object): Promise<string> => {
        const body = JSON.stringify({ assigner: 'oscorp', assignee: 'osborn', ...terms });
        return jsonOf(await stage.must('POST', '/tenants/oscorp/sharing', stage.headers('oscorp admin'), body))['id'] as string;
      };
      for (const types of [['Deal', 'Hidden'], ['Party']]) {
        const id = await propose({ target: { types }, permission: ['read'], masking: { id: 'null' } });
        await taker.send('PATCH', `/tenants/osborn/sharing/${id}`, { state: 'accepted' });
        await giver.send('PATCH', `/tenants/oscorp/sharing/${id}`, { state: 'active' });
        if (types.includes('Party')) await giver.send('DELETE', `/tenants/oscorp/sharing/${id}`);
      }
      stage.ids.set('hidden agreement of names', await propose({ target: { types: ['Card'] } }));
      await taker.sql('SELECT * FROM Hidden');
      await giver.evolve('Hidden', { properties: { [secret(stage, 'a column of what is shared')]: 'string' } });
      // Administrators take back what guards their own, and nobody else’s.
      await giver.evolve('Deal', { protected: false });
    }),
  },
];

/** What others do to their own names between two requests. */
export async function renaming(stage: Stage): Promise<void> {
  const { evolve, attempt } = acting(stage, 'oscorp');
  const column = { properties: { [secret(stage, 'a column that came meanwhile')]: 'string' } };
  for (const name of ['Mine', 'Probe2']) {
    await attempt('POST', '/types', { name, properties: { id: 'string' }, primary_key: 'id' });
    await evolve(name, column);
  }
  // The name may be the store's by now: then it is not theirs to take.
  await attempt('DELETE', '/schema/branches/mine');
  await attempt('POST', '/v1/namespaces/mine/branch', { branch_from: 'main' });
  await attempt('POST', '/query', { sql: 'DROP LOOKUP mine_names' });
  await attempt('POST', '/lookup/register', lookup('mine_names'));
  await attempt('POST', '/query', { sql: 'DROP MATERIALIZED VIEW mine_view' });
  const view = "CREATE MATERIALIZED VIEW mine_view AS SELECT id FROM Card WHERE id = 'none' REFRESH INCREMENTAL EVERY 86400";
  await attempt('POST', '/query', { sql: view });
}
