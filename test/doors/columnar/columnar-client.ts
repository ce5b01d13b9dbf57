/** Plain requests to the columnar HTTP door of a world. */
import type { StoreWorld } from '../http/store-world.ts';

export function columnarUrl({ others }: Pick<StoreWorld, 'others'>): string {
  return `http://127.0.0.1:${others.find(({ name }) => name === 'columnar-http')!.port}`;
}

export interface ColumnarReply {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  readonly text: string;
}

export async function request(
  world: Pick<StoreWorld, 'others'>,
  key: string,
  parameters: Readonly<Record<string, string>>,
  init: RequestInit = {},
): Promise<ColumnarReply> {
  const headers = { 'x-columnar-key': key, ...(init.headers as Record<string, string> | undefined) };
  const reply = await fetch(`${columnarUrl(world)}/?${new URLSearchParams(parameters).toString()}`, { ...init, headers });
  const bytes = new Uint8Array(await reply.arrayBuffer());
  return { status: reply.status, headers: reply.headers, bytes, text: Buffer.from(bytes).toString() };
}
