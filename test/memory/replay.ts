/**
 * Recalls that were recorded are made again from the log alone. A store is filled with generated memories, corrected, faded,
 * quarantined and forgotten meanwhile; then it is closed, opened from nothing but its log, and every ToolCall of a recall is
 * replayed. What must hold: the same ids and scores, to the last bit; and after an erasure a replay says so.
 */
import { systemClock, systemRandom } from '../../src/clock.ts';
import { loadSettings } from '../../src/config.ts';
import { callVerb, type VerbRequest } from '../../src/doors/verbs/call-verb.ts';
import type { VerbDependencies } from '../../src/doors/verbs/verb-call.ts';
import { verbs } from '../../src/doors/verbs/all.ts';
import { readDocument } from '../../src/doors/rich-text/chunks.ts';
import { assert } from '../../src/errors.ts';
import { tenantlessCaller } from '../../src/governance/caller.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { Service } from '../../src/service.ts';

export interface ReplayFigures {
  readonly recalls: number;
  readonly identical: number;
  /** Ids of calls that came out otherwise. */
  readonly differing: readonly string[];
  /** Of the recalls that answered with a memory that was then removed for good: how many replays say so. */
  readonly erased: { readonly asked: number; readonly told: number };
  readonly secondsToReplay: number;
}

const settings = loadSettings({
  env: {
    SERVICE_DATA_DIR: '/data',
    SERVICE_KEK: 'ab'.repeat(32),
    SERVICE_QUERY_QUOTA: '1000000000',
    SERVICE_PURPOSES: 'test',
    SERVICE_WAL_SYNC: 'off',
  },
  workingDirectory: '/nowhere',
  homeDirectory: '/nowhere',
});

class World {
  readonly service: Service;
  #calls = 0;

  constructor(service: Service) {
    this.service = service;
  }

  static async open(disk: MemoryDisk): Promise<World> {
    const version = 'test';
    return new World(
      await Service.open({
        settings,
        disk,
        clock: systemClock,
        random: systemRandom,
        version,
        say: () => undefined,
        sealIdleMs: 0,
      }),
    );
  }

  async call(name: string, input: object): Promise<Record<string, unknown>> {
    const { service } = this;
    const { planner, clock, ids } = service;
    const { jobs, jobDesk: schedule, workflows } = service.automation;
    const yieldTurn = service.turns.yieldFor('bodies');
    const system = { version: 'test' } as VerbDependencies['system'];
    const metrics = { registry: { metrics: async () => '' } };
    const parts: VerbDependencies = {
      planner,
      clock,
      ids,
      jobs,
      schedule,
      workflows,
      yieldTurn,
      system,
      metrics,
      embedder: null,
      translator: null,
      readDocuments: readDocument,
    };
    const verb = verbs.find((each) => each.name === name)!;
    const asked: VerbRequest = { verb, input, caller, purpose: 'test', correlationId: `c${++this.#calls}` };
    return (await callVerb(service.gate, parts, asked)).output as Record<string, unknown>;
  }
}

const caller = { ...tenantlessCaller('agent', 'operator', 'test'), path: 'acme/agents', tenant: 'acme' };

const people = ['Ada', 'Bob', 'Cleo', 'Dan', 'Eve', 'Finn', 'Gus', 'Hal'];
const likes = ['tea', 'coffee', 'cocoa', 'chess', 'rowing', 'gardens', 'old maps', 'night trains'];
const places = ['Oslo', 'Rome', 'Lima', 'Kyoto', 'Bergen', 'Porto'];

/** An xorshift: the same store for the same seed, but for its instants. */
function random(seed: number): (below: number) => number {
  let state = (Math.imul(seed + 1, 0x9e3779b1) ^ 0x5bd1e995) | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

export async function recallReplay(recalls: number, seed: number, say: (line: string) => void): Promise<ReplayFigures> {
  const disk = new MemoryDisk();
  const draw = random(seed);
  const pick = <T>(of: readonly T[]): T => of[draw(of.length)]!;
  const fact = (): string => `${pick(people)} likes ${pick(likes)} and moved to ${pick(places)} in ${2000 + draw(25)}`;
  let world = await World.open(disk);
  const live: string[] = [];
  const calls: string[] = [];
  const instants: bigint[] = [];
  for (let n = 0; calls.length < recalls; n++) {
    if (n < 60 || draw(8) === 0) {
      const { id } = await world.call('remember', {
        content: fact(),
        session_id: `s${draw(12)}`,
        confidence: draw(11) / 10,
        memory_class: pick(['fact', 'preference']),
        ...(live.length > 0 && draw(4) === 0 && { derived_from: [pick(live)] }),
        ...(draw(3) === 0 && { valid_from: `20${10 + draw(10)}-01-01` }),
      });
      live.push(id as string);
    } else if (draw(20) === 0) {
      const [old] = live.splice(draw(live.length), 1);
      live.push((await world.call('consolidate', { id: old, content: fact() }))['new_id'] as string);
    } else if (draw(60) === 0) await world.call('quarantine', { id: pick(live) });
    const query = `what does ${pick(people)} like, ${pick(likes)} or ${pick(places)}`;
    const { call_id: id, as_of_system: at } = await world.call('recall', {
      query,
      top_k: 1 + draw(15),
      ...(draw(3) === 0 && { stability_days: 1 + draw(60) }),
      ...(draw(3) === 0 && { recency_half_life_secs: 10 ** draw(8) }),
      ...(draw(4) === 0 && { min_confidence: draw(9) / 10 }),
      ...(draw(5) === 0 && { budget_tokens: 20 + draw(200) }),
      ...(draw(5) === 0 && { cancel_threshold: draw(10) / 10 }),
      ...(draw(5) === 0 && { session_id: `s${draw(12)}` }),
      ...(instants.length > 0 && draw(6) === 0 && { as_of: String(pick(instants)) }),
    });
    calls.push(id as string);
    instants.push(at as bigint);
    if (calls.length % 1_000 === 0) say(`${calls.length} of ${recalls} recalls recorded`);
  }
  await world.service.close();
  assert((await disk.list('/data/projections')).length === 0, 'there is nothing but the log to make them of again');
  say('opened again, from the log alone');
  world = await World.open(disk);
  const begunMs = systemClock.monotonicMs();
  const differing: string[] = [];
  for (const [i, id] of calls.entries()) {
    const { match } = await world.call('replay_recall', { id });
    if (match !== true) differing.push(id);
    if ((i + 1) % 1_000 === 0) say(`${i + 1} of ${recalls} replayed, ${differing.length} differ`);
  }
  const secondsToReplay = (systemClock.monotonicMs() - begunMs) / 1_000;
  const erased = await eraseOne(world, live[0]!, calls);
  await world.service.close();
  return { recalls, identical: recalls - differing.length, differing, erased, secondsToReplay };
}

/** Removes one memory for good, and replays some of the recalls that answered with it. */
async function eraseOne(world: World, id: string, calls: readonly string[]): Promise<ReplayFigures['erased']> {
  const naming: string[] = [];
  for (const call of calls) {
    const { recorded } = (await world.call('replay_recall', { id: call })) as { recorded: { ids: readonly string[] } };
    if (recorded.ids.includes(id)) naming.push(call);
    if (naming.length === 10) break;
  }
  await world.call('forget', { id });
  let told = 0;
  for (const call of naming) if ((await world.call('replay_recall', { id: call }))['reason'] === 'erased_rows') told++;
  return { asked: naming.length, told };
}
