/** A whole store behind its HTTP door whose bytes depend on nothing but what is asked of it: for data directories that are kept. */
import { openHttpDoor } from '../src/cli/serve.ts';
import { loadSettings } from '../src/config.ts';
import { doorStatuses } from '../src/doors/doors.ts';
import type { HttpDoor } from '../src/doors/http/server.ts';
import type { Disk } from '../src/log/disk/disk.ts';
import { parseInstant } from '../src/log/values/timestamp.ts';
import { Service, type ServiceDependencies } from '../src/service.ts';
import { type Reply, send } from './doors/http/door-world.ts';
import { TestClock, TestRandom } from './harness.ts';

const adminSecret = 'admin-secret-for-tests';

export class FrozenStore {
  readonly service: Service;
  readonly clock: TestClock;
  readonly #door: HttpDoor;
  readonly #token: string;
  readonly said: readonly string[];

  private constructor(service: Service, clock: TestClock, door: HttpDoor, token: string, said: readonly string[]) {
    this.service = service;
    this.clock = clock;
    this.#door = door;
    this.#token = token;
    this.said = said;
  }

  static async open(
    disk: Disk,
    directory: string,
    instant: string,
    seed: number,
    parts: Partial<ServiceDependencies> = {},
  ): Promise<FrozenStore> {
    const clock = new TestClock(instant);
    const env = {
      SERVICE_DATA_DIR: directory,
      SERVICE_KEK: '07'.repeat(32),
      SERVICE_PORT: '0',
      SERVICE_ADMIN_BIND: '127.0.0.1:0',
      SERVICE_ADMIN_TOKEN: adminSecret,
    };
    const settings = loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' });
    const said: string[] = [];
    const service = await Service.open({
      settings,
      disk,
      clock,
      random: new TestRandom(seed),
      version: 'test',
      say: (line) => said.push(line),
      derived: { machineBytes: 1 << 30, segmentRows: 64 },
      ...parts,
    });
    const door = await openHttpDoor(service, settings, () => doorStatuses(settings));
    const authorization = `Bearer ${adminSecret}`;
    const minted = await send(door.adminPort, 'POST', '/admin/tokens', { principal: 'tester' }, { authorization });
    return new FrozenStore(service, clock, door, String(minted.json['token']), said);
  }

  async close(): Promise<void> {
    const stopped = this.#door.stop();
    await this.service.close();
    await stopped;
  }

  /** A reply that says no fails. */
  async good(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const asked = { authorization: `Bearer ${this.#token}`, 'x-organization-id': 'acme', ...headers };
    const reply = await send(this.#door.port, method, path, body, asked);
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
    return reply;
  }

  async admin(method: string, path: string, body: unknown): Promise<void> {
    const reply = await send(this.#door.adminPort, method, path, body, { authorization: `Bearer ${adminSecret}` });
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
  }

  /** Exact integers, which JSON has none of. */
  async csv(sql: string, headers: Record<string, string> = {}): Promise<readonly string[]> {
    const asked = `/export?format=csv&sql=${encodeURIComponent(sql)}`;
    return (await this.good('GET', asked, undefined, headers)).text.trimEnd().split(/\r?\n/);
  }

  /** The one row that a statement of the control language gives. */
  async control(sql: string): Promise<Readonly<Record<string, unknown>>> {
    const [row] = (await this.good('POST', '/query', { sql })).json['rows'] as Record<string, unknown>[];
    return row!;
  }
}

const selects = [
  'SELECT who, COUNT(*) AS n, MIN(age) AS youngest, MAX(system_to) AS until FROM Person GROUP BY who ORDER BY who',
  "SELECT id, name, age FROM Person AS OF CURRENT WHERE id = 'p1' OR age > 296 ORDER BY id",
  "SELECT id, name, age, system_from FROM Person AS OF SYSTEM TIME '2024-01-15' WHERE id = 'p1'",
  'SELECT id, n, system_from, system_to FROM Plain ORDER BY id, system_from',
  'SELECT COUNT(*) AS n, SUM(age) AS sum FROM Ages',
  'SELECT id, content FROM MemoryItem ORDER BY id',
];

/** What is asked of a directory that is kept, with the answer. */
export async function answers(store: FrozenStore, exhibit: string): Promise<Readonly<Record<string, unknown>>> {
  const found: Record<string, unknown> = {};
  for (const sql of selects) found[sql] = await store.csv(sql);
  found['on the branch'] = await store.csv('SELECT id, n FROM Plain AS OF CURRENT ORDER BY id', { 'x-service-branch': 'trial' });
  const { stored_seal, derived_seal, match } = await store.control(`EXPLAIN_REPLAY('${exhibit}', SEQ => 1)`);
  found['replayed'] = { stored_seal, derived_seal, match };
  found['erased'] = await store.control("ERASE SUBJECT 'who-0' REASON 'asked again' CERTIFY");
  const { retention } = store.service.store.projections;
  found['due'] = retention.due(parseInstant('2024-04-30'), 10).map(({ type, position }) => ({ type, position }));
  found['held'] = retention.holds('MemoryItem').map(({ id, position }) => ({ id, position }));
  return found;
}
