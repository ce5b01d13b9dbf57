/** The common part of memory verbs: types, ids, and the state of an item. */
import { ServiceError } from '../../../errors.ts';
import { z } from 'zod';
import type { VerbRow } from '../verb-rows.ts';
import { quote, textOf } from '../verb-rows.ts';
import type { VerbCall } from '../verb-call.ts';

export const memoryItem = 'MemoryItem';

export const itemId = z.string().min(1).max(1_024).describe('id of the memory');
export const memoryType = z
  .string()
  .min(1)
  .default(memoryItem)
  .describe('a registered type that the memory is of; MemoryItem by default');
export const confidence = z.number().min(0).max(1);
export const sessionId = z.string().min(1).max(1_024);

/** How an item stands now; every version of it that may be seen, the newest last. */
export interface ItemState {
  readonly state: 'live' | 'superseded';
  /** The live version, else the last one. */
  readonly row: VerbRow;
}

/** Null for an item that never existed, and for one that the caller may not see. */
export async function itemStateOf(verbCall: VerbCall, type: string, id: string): Promise<ItemState | null> {
  verbCall.type(type);
  const [live] = await callersRowsFirst(verbCall, await verbCall.ask(`SELECT * FROM ${quote(type)} WHERE _pk = $1`, [id]));
  if (live !== undefined) return { state: 'live', row: live };
  const versions = await verbCall.ask(
    `SELECT * FROM ${quote(type)} WHERE _pk = $1 ORDER BY system_from DESC LIMIT 1`,
    [id],
    'all',
  );
  const [last] = versions;
  return last === undefined ? null : { state: 'superseded', row: last };
}

/** Rows of one key may be of several paths: that of the caller's own comes first. */
async function callersRowsFirst(verbCall: VerbCall, memoryRows: VerbRow[]): Promise<VerbRow[]> {
  const { path: callerPath } = verbCall.invocation.caller;
  return memoryRows.sort(
    (memoryA, memoryB) =>
      Number(textOf(memoryB['namespace_path']) === callerPath) - Number(textOf(memoryA['namespace_path']) === callerPath),
  );
}

export const unknownItem = (): ServiceError => new ServiceError('REL_NOT_FOUND', 'no such memory');

/** The item that took the place of another; null: none did. */
export async function successorOf(verbCall: VerbCall, memoryTypeName: string, memoryId: string): Promise<string | null> {
  if (verbCall.type(memoryTypeName).properties['supersedes'] === undefined) return null;
  const successorRows = await verbCall.ask(
    `SELECT _pk FROM ${quote(memoryTypeName)} WHERE supersedes = $1 ORDER BY system_from DESC LIMIT 1`,
    [memoryId],
    'all',
  );
  return textOf(successorRows[0]?.['_pk']);
}

/** The chain from an item to its live successor, or to the last there was. Each id comes once, even if rows form a cycle. */
export async function chainFrom(verbCall: VerbCall, memoryTypeName: string, memoryId: string): Promise<readonly string[]> {
  const supersessionChain = [memoryId];
  for (
    let successorId = await successorOf(verbCall, memoryTypeName, memoryId);
    successorId !== null;
    successorId = await successorOf(verbCall, memoryTypeName, successorId)
  ) {
    if (supersessionChain.includes(successorId) || supersessionChain.length === supersessionChainMax) break;
    supersessionChain.push(successorId);
  }
  return supersessionChain;
}

const supersessionChainMax = 200;
