/** A world in which the example of every verb is answered, and what its placeholders stand for there. */
import type { VerbRoute } from '../../../src/doors/verbs/verb.ts';
import type { StoreWorld } from '../http/store-world.ts';

export type Known = Readonly<Record<'a memory' | 'another memory' | 'a recall' | 'a job' | 'a run', string>>;

type Reply = { readonly content: readonly { readonly text: string }[] };

const textOf = ({ content }: Reply): Record<string, string> => JSON.parse(content[0]!.text) as Record<string, string>;

/** Types that functions of the domain read by their role. */
const roles: Readonly<Record<string, object>> = {
  Case: { title: 'string', status: 'string', subjects: 'json' },
  Listing: { name: 'string', list: 'string' },
  Ownership: { owner: 'string', owned: 'string', pct: 'number' },
  Post: { account: 'string', text: 'string' },
  Sighting: { subject: 'string', lat: 'number', lon: 'number' },
  Transfer: { from: 'string', to: 'string', amount: 'number', at: 'timestamp' },
};

/** Memories of their own for who asks: one call may end what the next is about. */
export async function known(world: Pick<StoreWorld, 'call'>, headers: Record<string, string> = {}): Promise<Known> {
  const post = async (path: string, body: object): Promise<Record<string, string>> =>
    textOf((await world.call('POST', `/memory/${path}`, { purpose: 'test', ...body }, headers)).json as unknown as Reply);
  // Somebody to erase.
  await world.call(
    'POST',
    '/types',
    { name: 'Somebody', properties: { id: 'string', who: { type: 'string', subject: true } }, primary_key: 'id' },
    headers,
  );
  for (const [name, properties] of Object.entries(roles)) {
    await world.call('POST', '/types', { name, properties: { id: 'string', ...properties }, primary_key: 'id' }, headers);
  }
  await world.call('POST', '/ingest?object_type=Somebody', [{ id: '1', who: 'nobody' }], headers);
  const task = await world.call('POST', '/ingest?object_type=Somebody&async=true', [{ id: '2', who: 'no one' }], headers);
  await world.call('POST', '/ingest?object_type=Case', [{ id: 'a case', title: 'Pier' }], headers);
  await world.call('POST', '/workflows', { name: 'a workflow', steps: [{ query: { sql: 'SELECT 1' } }] }, headers);
  const run = await world.call('POST', '/workflows/runs', { name: 'a workflow' }, headers);
  const [{ id }, { id: other }] = [
    await post('remember', { content: 'the kettle is blue', session_id: 's1' }),
    await post('remember', { content: 'tea is hot' }),
  ];
  const { call_id: call } = await post('recall', { query: 'kettle' });
  return {
    'a memory': id!,
    'another memory': other!,
    'a recall': call!,
    'a job': String(task.json['task_id']),
    'a run': String(run.json['run_id']),
  };
}

/** The example with ids of that world. */
export function filled<T>(example: T, ids: Readonly<Record<string, string>>): T {
  let text = JSON.stringify(example);
  for (const [name, id] of Object.entries(ids)) text = text.replaceAll(JSON.stringify(name), JSON.stringify(id));
  return JSON.parse(text) as T;
}

/** The request of a route with this input: in its path, and in the query or the body. */
export function requestOf(
  { method, url }: VerbRoute,
  input: Readonly<Record<string, unknown>>,
): { readonly path: string; readonly body?: object } {
  const path = url.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(input[name])));
  const rest = Object.entries(input).filter(([name]) => !url.includes(`:${name}`));
  if (method === 'POST') return { path, body: Object.fromEntries(rest) };
  const query = new URLSearchParams(Object.fromEntries(rest.map(([name, value]) => [name, String(value)])));
  return { path: `${path}?${query.toString()}` };
}
