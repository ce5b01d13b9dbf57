/** Health, version, status, metrics, configuration and machine-readable descriptions. */
import { z } from 'zod';
import type { SettingName } from '../../../config.ts';
import { ServiceError } from '../../../errors.ts';
import { platformAdmin } from '../../../governance/authorization/access-rules.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import { descriptionOf } from '../openapi.ts';
import { reply, route, type Route } from '../route.ts';
import type { SystemContract } from '../system-contract.ts';
import { problems } from '../schemas.ts';

const probe = { access: 'probe', action: null } as const;
const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const health = z.object({ status: z.string() });

export const systemRoutes: readonly Route[] = [
  // Source: specification, "Authentication" and the rulings on it: these answer without a token.
  route({
    method: 'GET',
    path: '/health',
    ...probe,
    summary: 'Does it answer?',
    tags: ['system'],
    replies: { 200: health },
    handle: () => ({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/health/live',
    ...probe,
    summary: 'Is the process alive?',
    tags: ['system'],
    replies: { 200: health },
    handle: () => ({ status: 'live' }),
  }),
  route({
    method: 'GET',
    path: '/health/ready',
    ...probe,
    summary: 'Does it take work?',
    tags: ['system'],
    replies: { 200: health, ...problems },
    handle: ({ context: { draining, system } }) => {
      const state = draining.hasBegun ? 'draining' : system.state();
      if (state !== 'ready') throw new ServiceError('REL_UNAVAILABLE', unready(system, state), { retryAfterSecs: 1 });
      return { status: 'ready' };
    },
  }),
  route({
    method: 'GET',
    path: '/version',
    ...probe,
    summary: 'Version of the server',
    tags: ['system'],
    replies: { 200: z.object({ name: z.string(), version: z.string(), profile: z.string(), demo: z.boolean().optional() }) },
    handle: ({ context: { system } }) => ({
      name: 'annals',
      version: system.version,
      profile: system.profile,
      ...(system.demo ? { demo: true } : {}),
    }),
  }),

  route({
    method: 'GET',
    path: '/status',
    ...reading,
    summary: 'State of the store and its doors',
    tags: ['system'],
    replies: { 200: z.looseObject({}) },
    run: async (_, { request, context: { system, clock, startedMs } }) => ({
      state: system.state(),
      failure: system.failure(),
      version: system.version,
      profile: system.profile,
      uptime_secs: Math.floor((clock.monotonicMs() - startedMs) / 1000),
      wal_sync: system.walSync(),
      // Asked for port 0, the door knows best which one it got.
      doors: system.doors().map((door) => (door.name === 'http' ? { ...door, port: request.socket.localPort } : door)),
      ...(system.demo ? { demo: true } : {}),
    }),
  }),
  route({
    method: 'GET',
    path: '/metrics',
    ...reading,
    summary: 'Metrics as Prometheus text',
    tags: ['system'],
    replies: { 200: z.string() },
    run: async (
      invocation,
      {
        context: {
          metrics: { registry },
        },
      },
    ) => {
      refuseTenants(invocation);
      return reply(200, await registry.metrics(), { 'content-type': registry.contentType });
    },
  }),
  route({
    method: 'GET',
    path: '/metrics.json',
    ...reading,
    summary: 'Metrics as JSON',
    tags: ['system'],
    replies: { 200: z.array(z.looseObject({})) },
    run: async (invocation, { context }) => {
      refuseTenants(invocation);
      return context.metrics.registry.getMetricsAsJSON();
    },
  }),
  route({
    method: 'GET',
    path: '/config',
    ...reading,
    summary: 'Settings in force: the limits that a client meets; with the role platform-admin all of them, secrets redacted',
    tags: ['system'],
    replies: { 200: z.looseObject({}) },
    run: async ({ caller }, { context }) => {
      const all = Object.entries(context.system.config());
      const looksAfterAll = caller.tenant === null && caller.roles.includes(platformAdmin);
      return { settings: Object.fromEntries(looksAfterAll ? all : all.filter(([name]) => clientLimits.has(name))) };
    },
  }),
  route({
    method: 'GET',
    path: '/openapi.json',
    ...reading,
    run: async (_, { request }) =>
      reply(200, await descriptionOf(request.server), { 'content-type': 'application/json; charset=utf-8' }),
  }),
  route({
    method: 'GET',
    path: '/specs',
    ...reading,
    summary: 'Machine-readable descriptions',
    tags: ['system'],
    replies: {
      200: z.object({ specs: z.array(z.object({ name: z.string(), href: z.string(), media_type: z.string() })) }),
    },
    run: async () => ({
      specs: [{ name: 'openapi', href: '/openapi.json', media_type: 'application/json' }],
    }),
  }),
];

/** The reason why the store is not ready, and what the operator can do. */
function unready(system: SystemContract, state: string): string {
  const why = system.failure();
  if (why === null) return `the store is ${state}`;
  return state === 'full'
    ? `${why}: the store goes on by itself once there is room`
    : `the store is ${state} (${why}): restart it`;
}

/** Settings that concern clients; all others are about the machine, its keys or other doors. */
const clientLimits: ReadonlySet<string> = new Set<SettingName>([
  'SERVICE_PROFILE',
  'SERVICE_ERRORS_BASE',
  'SERVICE_BODY_LIMIT_MB',
  'SERVICE_PURPOSE_MODE',
  'SERVICE_TENANCY_MODE',
  'SERVICE_WAL_SYNC',
  'SERVICE_DURABILITY',
  'SERVICE_QUERY_TIMEOUT_SECS',
  'SERVICE_MAX_RESULT_ROWS',
  'SERVICE_MAX_SCANNED_ROWS',
  'SERVICE_QUERY_MEMORY_MB',
  'SERVICE_MAX_INFLIGHT_QUERIES',
  'SERVICE_QUERY_QUOTA',
  'SERVICE_QUERY_QUOTA_PERIOD_SECS',
  'SERVICE_RATE_LIMIT_RPS',
  'SERVICE_READ_RATE_LIMIT_RPS',
  'SERVICE_MEMORY_RATE_LIMIT_RPS',
  'SERVICE_MAX_WATCH_SUBSCRIPTIONS',
  'SERVICE_MAX_VECTOR_K',
  'SERVICE_MV_MAX_ROWS',
]);

/** Figures of the whole store tell one tenant how much the others ask and write. */
function refuseTenants({ caller }: Invocation): void {
  if (caller.tenant !== null)
    throw new ServiceError('REL_ACL', 'metrics cover the whole store: they need a token without a tenant');
}
