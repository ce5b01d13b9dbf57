/** Whole stores behind their doors for tests of conformance: each has the type Note, and is closed after its test. */
import { analyst } from '../../harness.ts';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

const worlds: StoreWorld[] = [];

export async function opened(settings: Record<string, string> = {}, parts: Parameters<typeof StoreWorld.open>[1] = {}) {
  const world = await StoreWorld.open(settings, parts);
  worlds.push(world);
  const type = { kind: 'register-type', name: 'Note', properties: null, primaryKey: null, graphTriggers: [] } as const;
  const request = { action: 'schema', purpose: null, correlationId: 'note' } as const;
  await world.service.gate.invoke(analyst, request, (invocation) => invocation.submit(type));
  return world;
}

export async function closeWorlds(): Promise<void> {
  for (const world of worlds.splice(0)) await world.close();
}

export const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** Something that every one of them can be asked. */
export const question = 'SELECT id FROM Note';

/** Status, and the code of the problem record; 'undefined' where there is none. */
export const codeOf = (reply: Reply): [number, unknown] => [reply.status, String(reply.json['type']).split('/').at(-1)];
