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

const probeAccess = { access: 'probe', action: null } as const;
const systemReading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const healthReply = z.object({ status: z.string() });

export const systemRoutes: readonly Route[] = [
  // Source: specification, "Authentication" and the rulings on it: these answer without a token.
  route({
    method: 'GET',
    path: '/health',
    ...probeAccess,
    summary: 'Does it answer?',
    tags: ['system'],
    replies: { 200: healthReply },
    handle: () => ({ status: 'ok' }),
  }),
  route({
    method: 'GET',
    path: '/health/live',
    ...probeAccess,
    summary: 'Is the process alive?',
    tags: ['system'],
    replies: { 200: healthReply },
    handle: () => ({ status: 'live' }),
  }),
  route({
    method: 'GET',
    path: '/health/ready',
    ...probeAccess,
    summary: 'Does it take work?',
    tags: ['system'],
    replies: { 200: healthReply, ...problems },
    handle: ({ context: { draining: httpDrain, system: systemDesk } }) => {
      const readyState = httpDrain.hasBegun ? 'draining' : systemDesk.state();
      if (readyState !== 'ready')
        throw new ServiceError('REL_UNAVAILABLE', unreadyReason(systemDesk, readyState), { retryAfterSecs: 1 });
      return { status: 'ready' };
    },
  }),
  route({
    method: 'GET',
    path: '/version',
    ...probeAccess,
    summary: 'Version of the server',
    tags: ['system'],
    replies: { 200: z.object({ name: z.string(), version: z.string(), profile: z.string(), demo: z.boolean().optional() }) },
    handle: ({ context: { system: systemDesk } }) => ({
      name: 'annals',
      version: systemDesk.version,
      profile: systemDesk.profile,
      ...(systemDesk.demo ? { demo: true } : {}),
    }),
  }),

  route({
    method: 'GET',
    path: '/status',
    ...systemReading,
    summary: 'State of the store and its doors',
    tags: ['system'],
    replies: { 200: z.looseObject({}) },
    run: async (_, { request: systemRequest, context: { system: systemDesk, clock, startedMs: doorStartedMs } }) => ({
      state: systemDesk.state(),
      failure: systemDesk.failure(),
      version: systemDesk.version,
      profile: systemDesk.profile,
      uptime_secs: Math.floor((clock.monotonicMs() - doorStartedMs) / 1000),
      wal_sync: systemDesk.walSync(),
      // Asked for port 0, the door knows best which one it got.
      doors: systemDesk
        .doors()
        .map((doorStatus) => (doorStatus.name === 'http' ? { ...doorStatus, port: systemRequest.socket.localPort } : doorStatus)),
      ...(systemDesk.demo ? { demo: true } : {}),
    }),
  }),
  route({
    method: 'GET',
    path: '/metrics',
    ...systemReading,
    summary: 'Metrics as Prometheus text',
    tags: ['system'],
    replies: { 200: z.string() },
    run: async (
      systemInvocation,
      {
        context: {
          metrics: { registry: metricRegistry },
        },
      },
    ) => {
      refuseTenantMetrics(systemInvocation);
      return reply(200, await metricRegistry.metrics(), { 'content-type': metricRegistry.contentType });
    },
  }),
  route({
    method: 'GET',
    path: '/metrics.json',
    ...systemReading,
    summary: 'Metrics as JSON',
    tags: ['system'],
    replies: { 200: z.array(z.looseObject({})) },
    run: async (systemInvocation, { context: httpContext }) => {
      refuseTenantMetrics(systemInvocation);
      return httpContext.metrics.registry.getMetricsAsJSON();
    },
  }),
  route({
    method: 'GET',
    path: '/config',
    ...systemReading,
    summary: 'Settings in force: the limits that a client meets; with the role platform-admin all of them, secrets redacted',
    tags: ['system'],
    replies: { 200: z.looseObject({}) },
    run: async ({ caller }, { context: httpContext }) => {
      const allSettings = Object.entries(httpContext.system.config());
      const isPlatformAdmin = caller.tenant === null && caller.roles.includes(platformAdmin);
      return {
        settings: Object.fromEntries(
          isPlatformAdmin ? allSettings : allSettings.filter(([settingName]) => clientLimitSettings.has(settingName)),
        ),
      };
    },
  }),
  route({
    method: 'GET',
    path: '/openapi.json',
    ...systemReading,
    run: async (_, { request: systemRequest }) =>
      reply(200, await descriptionOf(systemRequest.server), { 'content-type': 'application/json; charset=utf-8' }),
  }),
  route({
    method: 'GET',
    path: '/specs',
    ...systemReading,
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
function unreadyReason(systemDesk: SystemContract, storeState: string): string {
  const failureReason = systemDesk.failure();
  if (failureReason === null) return `the store is ${storeState}`;
  return storeState === 'full'
    ? `${failureReason}: the store goes on by itself once there is room`
    : `the store is ${storeState} (${failureReason}): restart it`;
}

/** Settings that concern clients; all others are about the machine, its keys or other doors. */
const clientLimitSettings: ReadonlySet<string> = new Set<SettingName>([
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
function refuseTenantMetrics({ caller: metricsCaller }: Invocation): void {
  if (metricsCaller.tenant !== null)
    throw new ServiceError('REL_ACL', 'metrics cover the whole store: they need a token without a tenant');
}
