/** A store of the cluster profile with credentials for everybody who looks after tenants, and for some who don't. */
import { expect } from 'vitest';
import type { ServiceDependencies } from '../../../src/service.ts';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

type Headers = Record<string, string>;

export class TenantWorld {
  readonly store: StoreWorld;
  /** Of no tenant, role platform-admin. */
  readonly platform: Headers;
  /** Tokens with the role tenant-admin. */
  readonly acme: Headers;
  readonly globex: Headers;
  /** A token of acme without a role. */
  readonly clerk: Headers;

  private constructor(store: StoreWorld, tokens: readonly Headers[]) {
    this.store = store;
    [this.platform, this.acme, this.globex, this.clerk] = tokens as [Headers, Headers, Headers, Headers];
  }

  /** With the tenants acme and globex registered. */
  static async open(
    settings: Readonly<Record<string, string>> = {},
    parts: Partial<Pick<ServiceDependencies, 'disk' | 'clock'>> = {},
  ): Promise<TenantWorld> {
    const store = await StoreWorld.open({ SERVICE_PROFILE: 'cluster', SERVICE_PURPOSES: 'analytics,test', ...settings }, parts);
    const platform = await store.tokenFor({ principal: 'pat', roles: ['platform-admin'] });
    for (const id of ['acme', 'globex']) await store.call('POST', '/tenants', { id }, platform);
    const tokens = [
      platform,
      await store.tokenFor({ principal: 'ann', tenant_id: 'acme', roles: ['tenant-admin'] }),
      await store.tokenFor({ principal: 'gus', tenant_id: 'globex', roles: ['tenant-admin'] }),
      await store.tokenFor({ principal: 'cleo', tenant_id: 'acme' }),
    ];
    return new TenantWorld(store, tokens);
  }

  close(): Promise<void> {
    return this.store.close();
  }

  call(who: Headers, method: string, path: string, body?: unknown): Promise<Reply> {
    return this.store.call(method, path, body, who);
  }

  /** The reply of a request that must be answered so. */
  async ok(who: Headers, method: string, path: string, body?: unknown, status = 200): Promise<Record<string, unknown>> {
    const reply = await this.call(who, method, path, body);
    expect([method, path, reply.status], reply.text).toEqual([method, path, status]);
    return reply.json;
  }

  async admin(method: string, path: string, body?: unknown, status = 200): Promise<Record<string, unknown>> {
    const reply = await this.store.admin(method, path, body);
    expect([method, path, reply.status], reply.text).toEqual([method, path, status]);
    return reply.json;
  }

  /** Status and code of a refusal. */
  async refusal(who: Headers, method: string, path: string, body?: unknown): Promise<[number, string]> {
    return codeOf(await this.call(who, method, path, body));
  }

  put(who: Headers, type: string, rows: readonly object[], more: Headers = {}): Promise<Reply> {
    return this.store.call('POST', `/ingest/auto?object_type=${type}`, rows.map((row) => JSON.stringify(row)).join('\n'), {
      ...who,
      ...more,
    });
  }

  /** `_pk` of every row of a type that somebody sees, in order. */
  async keys(who: Headers, type: string): Promise<unknown[]> {
    const rows = await this.store.rows(`SELECT _pk FROM ${type} AS OF CURRENT ORDER BY _pk`, who);
    return rows.map((row) => row['_pk']);
  }

  /** Access records of the whole store. */
  async records(): Promise<number> {
    let count = 0;
    for await (const entry of this.store.service.store.log.read(0))
      if (entry.body.kind === 'access') count += entry.body.records.length;
    return count;
  }
}

export function codeOf(reply: Reply): [number, string] {
  return [reply.status, String(reply.json['type']).split('/').at(-1)!];
}
