/** Plain requests to the graph HTTP door of a world. */
import type { StoreWorld } from '../http/store-world.ts';

export const graphSecret = 'graph-secret';

type Json = Readonly<Record<string, ReturnType<typeof JSON.parse>>>;

export interface GraphReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Json;
}

export const graphUrl = ({ others }: Pick<StoreWorld, 'others'>): string =>
  `http://127.0.0.1:${others.find(({ name }) => name === 'graph-http')!.port}`;

export async function graphRequest(
  world: Pick<StoreWorld, 'others'>,
  method: string,
  path: string,
  body?: unknown,
  { key = graphSecret, ...headers }: Readonly<Record<string, string>> = {},
): Promise<GraphReply> {
  const reply = await fetch(path.startsWith('http') ? path : graphUrl(world) + path, {
    method,
    headers: {
      ...(key !== '' && { authorization: `Basic ${Buffer.from(`me:${key}`).toString('base64')}` }),
      'content-type': 'application/json',
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await reply.text();
  return { status: reply.status, headers: reply.headers, text, json: text === '' ? {} : (JSON.parse(text) as Json) };
}
