/**
 * A store of many types, links and views, for `measures/catalogue.ts`, asked what drivers ask the catalogue. Arguments: types, repeats,
 * and a part of the names of the questions that are asked. Prints one line of JSON, an `AskedOnce`, for each time that a question is
 * asked: first after a type was registered each time, then with nothing changed.
 */
import { systemClock, systemRandom } from '../src/clock.ts';
import { loadSettings } from '../src/config.ts';
import { tenantlessCaller } from '../src/governance/caller.ts';
import type { Action, Invocation } from '../src/governance/gate-contract.ts';
import type { PropertyDefinition } from '../src/log/entries/entry.ts';
import { MemoryDisk } from '../src/log/disk/memory-disk.ts';
import type { ColumnType } from '../src/log/values/value.ts';
import type { ClientSession } from '../src/planner/system-catalogue/client-session.ts';
import { Service } from '../src/service.ts';
import { recordedSessions } from '../test/doors/relational/recorded-sessions.ts';
import { raisedLimits } from './annals-server.ts';

export interface AskedOnce {
  readonly question: string;
  readonly isCold: boolean;
  /** Of the process's CPU, and of that in its longest turn. */
  readonly cpuMs: number;
  readonly turnMs: number;
  readonly rows: number;
}

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** Counts the CPU of every turn of the loop: by the clock a busy machine would lengthen them. */
class Turns {
  #last = cpuMs();
  #longest = 0;
  #isOver = false;

  constructor() {
    const look = (): void => {
      const now = cpuMs();
      this.#longest = Math.max(this.#longest, now - this.#last);
      this.#last = now;
      if (!this.#isOver) setImmediate(look);
    };
    setImmediate(look);
  }

  longestMs(): number {
    this.#isOver = true;
    return Math.max(this.#longest, cpuMs() - this.#last);
  }
}

const [types, repeats] = process.argv.slice(2, 4).map(Number) as [number, number];
const [, , , , only = ''] = process.argv;
const typesPerCommit = 500;
const caller = tenantlessCaller('bench', 'operator', 'bench');
const service = await Service.open({
  settings: loadSettings({
    env: { SERVICE_IN_MEMORY: 'true', ...raisedLimits },
    workingDirectory: '/nowhere',
    homeDirectory: '/nowhere',
  }),
  disk: new MemoryDisk(),
  clock: systemClock,
  random: systemRandom,
  version: 'bench',
  say: () => undefined,
});
const session: ClientSession = {
  user: 'bench',
  database: 'annals',
  process: 1,
  variables: { all: () => [], instants: 'timestamptz', set: () => undefined },
};

await fill();
let cold = 0;
for (const { client, what, sql, parameters = [] } of recordedSessions) {
  if (/^show /i.test(sql) || !`${client}: ${what}`.includes(only)) continue;
  const literals = parameters.map((value) => (typeof value === 'number' ? BigInt(value) : String(value)));
  const ask = (isCold: boolean): Promise<AskedOnce> => timed(`${client}: ${what}`, isCold, sql, literals);
  for (let i = 0; i < repeats; i++) {
    await register(`Cold${cold++}`);
    console.log(JSON.stringify(await ask(true)));
  }
  for (let i = 0; i < repeats; i++) console.log(JSON.stringify(await ask(false)));
}
process.exit(0);

function invoke<T>(action: Action, run: (invocation: Invocation) => Promise<T>): Promise<T> {
  return service.gate.invoke(caller, { action, purpose: 'analytics', correlationId: service.ids.next() }, run);
}

function property(type: ColumnType, more: Partial<PropertyDefinition> = {}): PropertyDefinition {
  return { type, required: false, masked: false, indexed: false, subject: false, dims: 0, ...more };
}

function register(...names: readonly string[]): Promise<unknown> {
  const steps = names.map((name, i) => ({
    kind: 'register-type' as const,
    name,
    properties: {
      sku: property('string', { required: true }),
      amount: property('number'),
      count: property('integer'),
      at: property('timestamp'),
      maker: property('string', i === 0 ? {} : { references: names[i - 1]! }),
      more: property('json'),
      // One in ten is a link.
      ...(i % 10 === 9 && { from_id: property('string'), to_id: property('string') }),
    },
    primaryKey: 'sku',
    graphTriggers: [],
  }));
  return invoke('schema', (invocation) => invocation.submit({ kind: 'migrate-types', steps }));
}

async function fill(): Promise<void> {
  const names = ['Item', ...Array.from({ length: types - 1 }, (_, i) => `Type${i}`)];
  for (let first = 0; first < names.length; first += typesPerCommit)
    await register(...names.slice(first, first + typesPerCommit));
  for (const name of ['cheap', 'dear', 'recent'])
    await invoke('schema', (invocation) =>
      invocation.submit({
        kind: 'create-view',
        name,
        sql: 'SELECT sku, count FROM Item',
        refreshSecs: name === 'cheap' ? 60 : 0,
      }),
    );
}

async function timed(
  question: string,
  isCold: boolean,
  sql: string,
  parameters: readonly (string | bigint)[],
): Promise<AskedOnce> {
  const turns = new Turns();
  const began = cpuMs();
  const { answer } = await invoke('query', (invocation) =>
    service.planner.execute(invocation, {
      sql,
      parameters: parameters.length > 0 ? parameters : undefined,
      session,
      dialect: 'wide',
    }),
  );
  return { question, isCold, cpuMs: cpuMs() - began, turnMs: turns.longestMs(), rows: answer.rowCount };
}
