/** Health, version, status, metrics, configuration and the machine-readable descriptions. */
import { z } from 'zod';
import type { SettingName } from '../../../config.ts';
import { ServiceError } from '../../../errors.ts';
import { platformAdmin } from '../../../governance/authorization/policy.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import type { SystemDesk } from '../system-desk.ts';
import { problems } from '../schemas.ts';

const probe = { access: 'probe' } as const;
const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const health = z.object({ status: z.string() });

export function registerSystem(app: App, context: HttpContext): void {
  const { system } = context;
  const startedMs = context.clock.monotonicMs();

  // Source: specification, "Authentication" and the rulings on it: these answer without a token.
  app.route({
    method: 'GET',
    url: '/health',
    config: probe,
    schema: { summary: 'Does it answer?', tags: ['system'], response: { 200: health } },
    handler: () => ({ status: 'ok' }),
  });
  app.route({
    method: 'GET',
    url: '/health/live',
    config: probe,
    schema: { summary: 'Is the process alive?', tags: ['system'], response: { 200: health } },
    handler: () => ({ status: 'live' }),
  });
  app.route({
    method: 'GET',
    url: '/health/ready',
    config: probe,
    schema: { summary: 'Does it take work?', tags: ['system'], response: { 200: health, ...problems } },
    handler: () => {
      const state = context.draining.hasBegun ? 'draining' : system.state();
      if (state !== 'ready') throw new ServiceError('REL_UNAVAILABLE', unready(system, state), { retryAfterSecs: 1 });
      return { status: 'ready' };
    },
  });
  app.route({
    method: 'GET',
    url: '/version',
    config: probe,
    schema: {
      summary: 'Version of the server',
      tags: ['system'],
      response: { 200: z.object({ name: z.string(), version: z.string(), profile: z.string(), demo: z.boolean().optional() }) },
    },
    handler: () => ({ name: 'annals', version: system.version, profile: system.profile, ...(system.demo ? { demo: true } : {}) }),
  });

  app.route({
    method: 'GET',
    url: '/status',
    config: reading,
    schema: { summary: 'State of the store and its doors', tags: ['system'], response: { 200: z.looseObject({}), ...problems } },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async () => ({
        state: system.state(),
        failure: system.failure(),
        version: system.version,
        profile: system.profile,
        uptime_secs: Math.floor((context.clock.monotonicMs() - startedMs) / 1000),
        wal_sync: system.walSync(),
        // Asked for port 0, the door knows best which one it got.
        doors: system.doors().map((door) => (door.name === 'http' ? { ...door, port: request.socket.localPort } : door)),
        ...(system.demo ? { demo: true } : {}),
      })),
  });
  app.route({
    method: 'GET',
    url: '/metrics',
    config: reading,
    schema: { summary: 'Metrics as Prometheus text', tags: ['system'], response: { 200: z.string(), ...problems } },
    handler: async (request, reply) => {
      const text = await invoke(context, request, 'inspect', undefined, async (invocation) => {
        refuseTenants(invocation);
        return context.metrics.registry.metrics();
      });
      return reply.header('content-type', context.metrics.registry.contentType).send(text);
    },
  });
  app.route({
    method: 'GET',
    url: '/metrics.json',
    config: reading,
    schema: { summary: 'Metrics as JSON', tags: ['system'], response: { 200: z.array(z.looseObject({})), ...problems } },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async (invocation) => {
        refuseTenants(invocation);
        return context.metrics.registry.getMetricsAsJSON();
      }),
  });
  app.route({
    method: 'GET',
    url: '/config',
    config: reading,
    schema: {
      summary: 'Settings in force: the limits that a client meets; with the role platform-admin all of them, secrets redacted',
      tags: ['system'],
      response: { 200: z.looseObject({}), ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async ({ caller }) => {
        const all = Object.entries(system.config());
        const looksAfterAll = caller.tenant === null && caller.roles.includes(platformAdmin);
        return { settings: Object.fromEntries(looksAfterAll ? all : all.filter(([name]) => clientLimits.has(name))) };
      }),
  });
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config: reading,
    schema: { hide: true },
    handler: (request) => invoke(context, request, 'inspect', undefined, async () => app.swagger()),
  });
  app.route({
    method: 'GET',
    url: '/specs',
    config: reading,
    schema: {
      summary: 'Machine-readable descriptions',
      tags: ['system'],
      response: {
        200: z.object({ specs: z.array(z.object({ name: z.string(), href: z.string(), media_type: z.string() })) }),
        ...problems,
      },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async () => ({
        specs: [{ name: 'openapi', href: '/openapi.json', media_type: 'application/json' }],
      })),
  });
}

/** What the operator has to know, and what to do. */
function unready(system: SystemDesk, state: string): string {
  const why = system.failure();
  if (why === null) return `the store is ${state}`;
  return state === 'full'
    ? `${why}: the store goes on by itself once there is room`
    : `the store is ${state} (${why}): restart it`;
}

/** What a client meets; every other setting is about the machine, its keys or other doors. */
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
    throw new ServiceError('REL_ACL', 'metrics are of the whole store, of which a tenant sees its part');
}
