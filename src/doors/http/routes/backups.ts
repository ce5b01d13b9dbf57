/** Backups of the whole store, and restores beside it. Source: specification, "Endpoints", "Behaviour facts". */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { JobWork } from '../../../governance/jobs/job-runner.ts';
import { route, type Route } from '../route.ts';

const tags = ['system'];
const changing = { access: 'admin', action: 'administer' } as const;

/** A backup is of all tenants; asking for less is answered 501, not with more. */
const tenantFields = { tenant: z.unknown().optional(), tenant_id: z.unknown().optional() };

const backupReply = z
  .object({
    backup: z.string().describe('its name below SERVICE_BACKUP_DIR'),
    created_at: z.string(),
    engine_version: z.string(),
    root: z.string().describe('of the tree of all entries that it holds, in hex'),
    tree_size: z.int(),
    size_bytes: z.int(),
    digest_tree_size: z
      .int()
      .nullable()
      .describe('entries after which the projections were digested: what a restore is compared with; null while that goes on'),
  })
  .meta({ id: 'Backup' });

const damaged = z.object({ backup: z.string(), damaged: z.string().describe('why it can not be restored') });

const report = z
  .object({
    backup: z.string(),
    target_dir: z.string(),
    log_id: z.string(),
    root_match: z.boolean().describe('the restored log, hashed anew, gives the root that was signed'),
    root: z.string(),
    tree_size: z.int(),
    rows: z.int(),
    blobs: z.int(),
    size_bytes: z.int(),
    copy_ms: z.int().describe('copying, and comparing every digest'),
    replay_ms: z.int().describe('opening, checking and replaying all of it, behind the copying'),
    projections: z.array(z.object({ name: z.string(), digest: z.string(), match: z.boolean() })),
    compared_with: z.string().describe('what the digests of the projections were held against'),
    rows_erased: z.int().describe('rows of which a hash is left'),
    erased_keys: z.int(),
    erased_absent: z.boolean().describe('no key that was ever destroyed opens anything'),
  })
  .meta({ id: 'RestoreReport' });

export const backupRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/backup',
    ...changing,
    summary: 'Back up the whole store while it runs',
    tags,
    body: z.strictObject(tenantFields).nullish(),
    replies: { 200: backupReply },
    run: async (invocation, { body, context }) => {
      refuseTenant(body ?? {});
      const run = ({ signal, progress }: JobWork) => context.system.backups.create({ signal, onProgress: progress });
      const resultOf = ({ backup: name }: { readonly backup: string }) => ({ backup: name });
      const job = { kind: 'backup', unit: 'bytes', onDrain: 'cancel', run, resultOf } as const;
      const backup = await context.jobs.start(job, invocation.caller).ended;
      invocation.describe({ template: 'backup ?', literals: [backup.backup] });
      return backup;
    },
  }),

  route({
    method: 'GET',
    path: '/admin/backups',
    access: 'admin',
    action: 'inspect',
    summary: 'Backups, by name',
    tags,
    replies: { 200: z.object({ backups: z.array(z.union([backupReply, damaged])) }) },
    run: async (invocation, { context }) => {
      const listed = await context.system.backups.list();
      invocation.describe({ rowCount: listed.length });
      return { backups: listed };
    },
  }),

  route({
    method: 'POST',
    path: '/admin/restore',
    ...changing,
    summary: 'Restore a backup into an empty directory beside the running store',
    tags,
    body: z.strictObject({
      backup: z.string().optional().describe('as POST /admin/backup named it'),
      target_dir: z.string().optional().describe('absolute; empty, or not there yet'),
      ...tenantFields,
    }),
    replies: { 200: report },
    example: { body: { backup: 'a backup', target_dir: '/restored' } },
    run: async (invocation, { body, context }) => {
      const { backup, target_dir: target } = body;
      refuseTenant(body);
      if (backup === undefined || target === undefined)
        throw new ServiceError('REL_INVALID', 'backup and target_dir are required');
      invocation.describe({ template: 'restore ?', literals: [backup] });
      const run = ({ signal, progress }: JobWork) =>
        context.system.backups.restore(backup, target, { signal, onProgress: progress });
      const job = { kind: 'restore', about: backup, unit: 'bytes', onDrain: 'cancel', run } as const;
      return context.jobs.start(job, invocation.caller).ended;
    },
  }),
];

function refuseTenant(body: { readonly tenant?: unknown; readonly tenant_id?: unknown }): void {
  if (body.tenant !== undefined || body.tenant_id !== undefined)
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'backups and restores cover the whole store: they need a token without a tenant',
    );
}
