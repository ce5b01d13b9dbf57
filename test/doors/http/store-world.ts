/** The whole store behind its HTTP door: real log, projections, gate and planner on a memory disk and real sockets. */
import { openHttpDoor, openSocketDoors } from '../../../src/cli/serve.ts';
import { systemClock, systemRandom } from '../../../src/clock.ts';
import { loadSettings } from '../../../src/config.ts';
import type { Door } from '../../../src/doors/door.ts';
import { doorStatuses } from '../../../src/doors/doors.ts';
import type { HttpDoor } from '../../../src/doors/http/server.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { Service, type ServiceDependencies } from '../../../src/service.ts';
import { anyPorts } from '../../any-ports.ts';
import { type Reply, send } from './door-world.ts';

export const adminSecret = 'admin-secret-for-tests';

type Headers = Record<string, string | string[]>;

export class StoreWorld {
  readonly service: Service;
  readonly door: HttpDoor;
  /** Doors beside it: none unless the settings have SERVICE_BEARER_TOKEN. */
  readonly others: readonly Door[];
  /** A token without a tenant. */
  readonly token: string;

  private constructor(service: Service, door: HttpDoor, others: readonly Door[], token: string) {
    this.service = service;
    this.door = door;
    this.others = others;
    this.token = token;
  }

  /** With an admin credential, and a token for `call`; a setting of '' is left out. */
  static async open(
    settings: Readonly<Record<string, string>> = {},
    parts: Partial<Pick<ServiceDependencies, 'disk' | 'lookupFiles' | 'clock' | 'say' | 'derived' | 'restoreBeside'>> = {},
  ): Promise<StoreWorld> {
    const env: Record<string, string> = {
      SERVICE_IN_MEMORY: 'true',
      ...anyPorts,
      SERVICE_ADMIN_TOKEN: adminSecret,
      SERVICE_QUERY_QUOTA: '1000000000',
      SERVICE_RATE_LIMIT_RPS: '1000000',
      SERVICE_READ_RATE_LIMIT_RPS: '1000000',
      SERVICE_BODY_LIMIT_MB: '1',
      SERVICE_DRAIN_TIMEOUT_SECS: '5',
      ...settings,
    };
    for (const [name, value] of Object.entries(env)) if (value === '') delete env[name];
    const loaded = loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' });
    const service = await Service.open({
      settings: loaded,
      disk: new MemoryDisk(),
      clock: systemClock,
      random: systemRandom,
      version: '2.4.1',
      say: () => undefined,
      ...parts,
    });
    const statuses = doorStatuses(loaded);
    const door = await openHttpDoor(service, loaded, () => statuses);
    const others = await openSocketDoors(service, loaded, statuses);
    const { SERVICE_ADMIN_TOKEN: credential } = env;
    if (credential === undefined) return new StoreWorld(service, door, others, '');
    const minted = await send(
      door.adminPort,
      'POST',
      '/admin/tokens',
      { principal: 'tester' },
      { authorization: `Bearer ${credential}` },
    );
    return new StoreWorld(service, door, others, minted.json['token'] as string);
  }

  async close(): Promise<void> {
    const stopped = Promise.all([this.door, ...this.others].map((door) => door.stop()));
    await this.service.close();
    await stopped;
  }

  call(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Reply> {
    return send(this.door.port, method, path, body, { authorization: `Bearer ${this.token}`, ...headers });
  }

  admin(method: string, path: string, body?: unknown): Promise<Reply> {
    return send(this.door.adminPort, method, path, body, { authorization: `Bearer ${adminSecret}` });
  }

  query(sql: string, headers: Headers = {}): Promise<Reply> {
    return this.call('POST', '/query', { sql }, headers);
  }

  /** Rows of a question that must be answered. Integers beyond 2^53 lose digits here: look at `text` for those. */
  async rows(sql: string, headers: Headers = {}): Promise<Record<string, unknown>[]> {
    const reply = await this.query(sql, headers);
    if (reply.status !== 200) throw new Error(`${sql}: ${reply.text}`);
    return reply.json['rows'] as Record<string, unknown>[];
  }

  /** Header of a token minted with these fields. */
  async tokenFor(fields: object): Promise<{ authorization: string }> {
    const { json, text } = await this.admin('POST', '/admin/tokens', fields);
    if (json['token'] === undefined) throw new Error(text);
    return { authorization: `Bearer ${json['token'] as string}` };
  }
}
