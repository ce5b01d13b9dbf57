/**
 * One whole server whose time and chance are owned: the real HTTP door on real sockets over a memory disk. What must hold:
 * two labs that are asked the same things in the same order give the same bytes, so that any byte that differs was made by
 * what differs between them. For that, time moves by one fixed step a request and in no other way, chance begins anew with
 * each step, and whatever one lab alone is asked happens inside a `slot`, which ends at the same instant in both.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Agent, request as httpRequest } from 'node:http';
import { openHttpDoor, openSocketDoors } from '../../src/cli/serve.ts';
import type { Clock, Random } from '../../src/clock.ts';
import { loadSettings } from '../../src/config.ts';
import type { Door } from '../../src/doors/door.ts';
import { doorStatuses } from '../../src/doors/doors.ts';
import type { HttpDoor } from '../../src/doors/http/server.ts';
import { assert } from '../../src/errors.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { parseInstant } from '../../src/log/values/timestamp.ts';
import type { LookupFiles } from '../../src/planner/continuous/views/lookup-tables.ts';
import { Service } from '../../src/service.ts';

export type SentHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers?: SentHeaders;
  readonly body?: string | Buffer;
  /** On the admin listener. */
  readonly admin?: boolean;
  /** Past the framework where the door has a lane for it; over a connection of the framework otherwise. */
  readonly plain?: boolean;
  /** Instead: on a door of its own. */
  readonly door?: 'object' | 'columnar-http' | 'graph-http';
}

/** A reply as its bytes came, and the request that it is of. */
export interface Heard {
  readonly sent: Sent;
  readonly status: number;
  /** Names and values in the order in which they were sent. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

export interface Route {
  readonly method: string;
  readonly url: string;
  readonly listener: 'data' | 'admin';
}

export const routeName = ({ method, url, listener }: Route): string => `${listener} ${method} ${url}`;

const stepMs = 10;
const begins = '2024-01-01';
export const adminSecret = 'admin-secret-of-the-lab';
export const bootstrapSecret = 'bootstrap-secret-of-the-lab';

/** More requests than any slot makes. */
const slotSteps = 40;
/** As many ids as are drawn at once: after a slot the next id is of a new draw in both labs. */
const idsInADraw = 256;

/** Moves by `pass` only; who sleeps wakes then. */
class StepClock implements Clock {
  #steadyMs = 0;
  readonly #beganNs = parseInstant(begins);
  readonly #sleepers = new Set<{ readonly dueMs: number; readonly wake: () => void }>();

  now = (): bigint => this.#beganNs + BigInt(this.#steadyMs) * 1_000_000n;
  monotonicMs = (): number => this.#steadyMs;

  sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const sleeper = { dueMs: this.#steadyMs + ms, wake };
      this.#sleepers.add(sleeper);
      const sleepers = this.#sleepers;
      signal?.addEventListener('abort', wake, { once: true });
      function wake(): void {
        sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      }
    });
  };

  passTo(ms: number): void {
    assert(ms >= this.#steadyMs, 'time does not run backwards');
    this.#steadyMs = ms;
    for (const sleeper of this.#sleepers) if (sleeper.dueMs <= ms) sleeper.wake();
  }
}

/** A xorshift that begins anew at every step of the clock. */
class StepRandom implements Random {
  #state = 1;
  #first = 1;

  beginAt(step: number): void {
    this.#first = (Math.imul(step + 1, 0x9e3779b1) ^ 0x5bd1e995) | 1;
    this.beginAgain();
  }

  /** As if nothing had been drawn in this step. */
  beginAgain(): void {
    this.#state = this.#first;
  }

  fill<T extends Uint8Array>(target: T): T {
    for (let i = 0; i < target.length; i++) {
      this.#state ^= this.#state << 13;
      this.#state ^= this.#state >>> 17;
      this.#state ^= this.#state << 5;
      target[i] = this.#state & 0xff;
    }
    return target;
  }
}

export interface LabParts {
  readonly settings?: Readonly<Record<string, string>>;
  readonly lookupFiles?: LookupFiles;
}

export class Lab {
  readonly service: Service;
  readonly door: HttpDoor;
  /** Doors that speak HTTP beside it, by name. */
  readonly others: ReadonlyMap<string, Door>;
  /** Every route that the running server has registered, by listener. */
  readonly routes: readonly Route[];
  /** Routes that a request has reached, as `routeName` writes them. */
  readonly reached: ReadonlySet<string>;
  /** All lines for the operator. */
  readonly lines: readonly string[];
  readonly #clock: StepClock;
  readonly #random: StepRandom;
  readonly #ids: { drawn: number };
  readonly #agents: { readonly plain: Agent; readonly framework: Agent };
  #step = 0;

  private constructor(
    parts: Pick<Lab, 'service' | 'door' | 'others' | 'routes' | 'reached' | 'lines'>,
    clock: StepClock,
    random: StepRandom,
    ids: { drawn: number },
  ) {
    this.service = parts.service;
    this.door = parts.door;
    this.others = parts.others;
    this.routes = parts.routes;
    this.reached = parts.reached;
    this.lines = parts.lines;
    this.#clock = clock;
    this.#random = random;
    this.#ids = ids;
    const one = { keepAlive: true, maxSockets: 1 };
    this.#agents = { plain: new Agent(one), framework: new Agent(one) };
  }

  static async open({ settings = {}, lookupFiles }: LabParts = {}): Promise<Lab> {
    const env: Record<string, string> = {
      SERVICE_IN_MEMORY: 'true',
      SERVICE_PROFILE: 'cluster',
      SERVICE_PORT: '0',
      SERVICE_OBJECT_PORT: '0',
      SERVICE_COLUMNAR_HTTP_PORT: '0',
      SERVICE_GRPC_PORT: '0',
      SERVICE_FLIGHT_PORT: '0',
      SERVICE_GRAPH_HTTP_PORT: '0',
      SERVICE_ADMIN_BIND: '127.0.0.1:0',
      SERVICE_ADMIN_TOKEN: adminSecret,
      SERVICE_WORKBENCH_ENABLE: 'true',
      SERVICE_BEARER_TOKEN: bootstrapSecret,
      SERVICE_QUERY_QUOTA: '1000000000',
      SERVICE_RATE_LIMIT_RPS: '1000000',
      SERVICE_READ_RATE_LIMIT_RPS: '1000000',
      SERVICE_MAX_WATCH_SUBSCRIPTIONS: '1000',
      SERVICE_PURPOSES: 'analytics,test,fraud,fraud:card',
      SERVICE_DRAIN_TIMEOUT_SECS: '5',
      ...settings,
    };
    const loaded = loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' });
    const clock = new StepClock();
    const random = new StepRandom();
    const lines: string[] = [];
    const service = await Service.open({
      settings: loaded,
      disk: new MemoryDisk(),
      clock,
      random,
      version: '2.4.1',
      say: (line) => lines.push(line),
      sealIdleMs: 0,
      ...(lookupFiles && { lookupFiles }),
    });
    const registry = new RouteRegistry();
    const door = await registry.of(() => openHttpDoor(service, loaded, () => doorStatuses(loaded)));
    const names = ['object', 'columnar-http', 'graph-http'];
    const others = await openSocketDoors(
      service,
      loaded,
      names.map((name) => ({ name, port: 0, state: 'listening' })),
    );
    const ids = { drawn: 0 };
    const next = service.ids.next.bind(service.ids);
    service.ids.next = () => {
      // Nonces are drawn many at once too: a world with other entries than the other one may draw them in this step.
      if (ids.drawn % idsInADraw === 0) random.beginAgain();
      ids.drawn++;
      return next();
    };
    return new Lab(
      {
        service,
        door,
        others: new Map(others.map((each) => [each.name, each])),
        routes: registry.routes,
        reached: registry.reached,
        lines,
      },
      clock,
      random,
      ids,
    );
  }

  async close(): Promise<void> {
    for (const agent of Object.values(this.#agents)) agent.destroy();
    const stopped = Promise.all([this.door, ...this.others.values()].map((each) => each.stop()));
    // What waits for time to pass while the doors close is woken by it.
    const passing = setInterval(() => this.#passTo(this.#step + 1000), 1);
    await this.service.close();
    await stopped;
    clearInterval(passing);
  }

  get now(): bigint {
    return this.#clock.now();
  }

  /** When the next request comes. */
  get nextNow(): bigint {
    return this.now + BigInt(stepMs) * 1_000_000n;
  }

  /** One request at the next step. */
  async ask(sent: Sent): Promise<Heard> {
    this.#passTo(this.#step + 1);
    await settled();
    const heard = await this.#send(sent);
    await settled();
    return heard;
  }

  /** Time passes with nobody asking; what waited for it does its work. */
  async pass(ms: number): Promise<void> {
    const until = this.#step + Math.ceil(ms / stepMs);
    while (this.#step < until) {
      // In small strides, so that what renews itself does so as often as it would.
      this.#passTo(Math.min(until, this.#step + 50));
      await settled(12);
    }
    this.#alignIds();
  }

  /** What may differ from the other lab: afterwards both are at the same step, and the next id is the first of a draw. */
  async slot(run: (lab: Lab) => Promise<void>): Promise<void> {
    const ends = this.#step + slotSteps;
    await run(this);
    await settled();
    assert(this.#step <= ends, 'a slot is long enough for what happens in it');
    this.#passTo(ends);
    // What the end wakes may draw ids, too.
    await settled();
    this.#alignIds();
  }

  #alignIds(): void {
    while (this.#ids.drawn % idsInADraw !== 0) this.service.ids.next();
  }

  /** One step with nobody asking. */
  async tick(): Promise<void> {
    this.#passTo(this.#step + 1);
    await settled();
  }

  #passTo(step: number): void {
    this.#step = step;
    this.#random.beginAt(step);
    this.#clock.passTo(step * stepMs);
  }

  #send(sent: Sent): Promise<Heard> {
    const { method, path, headers = {}, body, admin = false, plain = false, door } = sent;
    const bytes = body === undefined ? null : Buffer.from(body as string);
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        {
          port: door ? this.others.get(door)!.port : admin ? this.door.adminPort : this.door.port,
          host: '127.0.0.1',
          method,
          path,
          agent: admin || door ? false : plain ? this.#agents.plain : this.#agents.framework,
          headers: {
            ...(headers as Record<string, string | string[]>),
            ...(bytes ? { 'content-length': bytes.length } : {}),
            // A header of one hop: the lane for plain requests leaves it to the framework.
            ...(plain || admin ? {} : { 'keep-alive': 'timeout=60' }),
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            const raw = response.rawHeaders;
            const pairs = Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i]!, raw[2 * i + 1]!] as const);
            resolve({ sent, status: response.statusCode ?? 0, headers: pairs, body: Buffer.concat(chunks) });
          });
        },
      );
      request.on('error', reject);
      request.end(bytes ?? undefined);
    });
  }
}

/** Whatever became possible has happened: work that was put off for a turn or two is done. */
export async function settled(turns = 3): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

interface FrameworkInstance {
  addHook(name: 'onRoute', hook: (route: { method: string | string[]; url: string }) => void): void;
  addHook(
    name: 'onResponse',
    hook: (request: { method: string; routeOptions: { url?: string } }, reply: unknown, done: () => void) => void,
  ): void;
}

/** The framework announces each listener as it makes it: the first is the data listener, the second that of administration. */
class RouteRegistry {
  readonly routes: Route[] = [];
  readonly reached = new Set<string>();
  #listeners = 0;

  async of<T>(open: () => Promise<T>): Promise<T> {
    const announced = (message: unknown): void => this.#listen((message as { fastify: FrameworkInstance }).fastify);
    subscribe('fastify.initialization', announced);
    try {
      return await open();
    } finally {
      unsubscribe('fastify.initialization', announced);
    }
  }

  #listen(app: FrameworkInstance): void {
    const listener = (['data', 'admin'] as const)[this.#listeners++];
    assert(listener !== undefined, 'the door has two listeners');
    app.addHook('onRoute', ({ method, url }) => {
      for (const each of [method].flat()) this.routes.push({ method: each, url, listener });
    });
    app.addHook('onResponse', (request, _reply, done) => {
      const { url } = request.routeOptions;
      if (url !== undefined) this.reached.add(routeName({ method: request.method, url, listener }));
      done();
    });
  }
}
