/** Backups of the whole store, and restores beside it. Source: specification, "Endpoints", "Behaviour facts". */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { JobWork } from '../../../governance/jobs/job-runner.ts';
import { route, type Route } from '../route.ts';

const backupTags = ['system'];
const backupAccess = { access: 'admin', action: 'administer' } as const;

/** A backup is of all tenants; asking for less is answered 501, not with more. */
const refusedTenantFields = { tenant: z.unknown().optional(), tenant_id: z.unknown().optional() };

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

const damagedBackup = z.object({ backup: z.string(), damaged: z.string().describe('why it can not be restored') });

const restoreReport = z
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
    ...backupAccess,
    summary: 'Back up the whole store while it runs',
    tags: backupTags,
    body: z.strictObject(refusedTenantFields).nullish(),
    replies: { 200: backupReply },
    run: async (backupInvocation, { body: backupBody, context: httpContext }) => {
      refuseTenantBackup(backupBody ?? {});
      const runBackupWork = ({ signal: backupSignal, progress: backupProgress }: JobWork) =>
        httpContext.system.backups.create({ signal: backupSignal, onProgress: backupProgress });
      const backupJobResult = ({ backup: backupFolder }: { readonly backup: string }) => ({ backup: backupFolder });
      const backupJob = {
        kind: 'backup',
        unit: 'bytes',
        onDrain: 'cancel',
        run: runBackupWork,
        resultOf: backupJobResult,
      } as const;
      const backupName = await httpContext.jobs.start(backupJob, backupInvocation.caller).ended;
      backupInvocation.describe({ template: 'backup ?', literals: [backupName.backup] });
      return backupName;
    },
  }),

  route({
    method: 'GET',
    path: '/admin/backups',
    access: 'admin',
    action: 'inspect',
    summary: 'Backups, by name',
    tags: backupTags,
    replies: { 200: z.object({ backups: z.array(z.union([backupReply, damagedBackup])) }) },
    run: async (backupInvocation, { context: httpContext }) => {
      const listedBackups = await httpContext.system.backups.list();
      backupInvocation.describe({ rowCount: listedBackups.length });
      return { backups: listedBackups };
    },
  }),

  route({
    method: 'POST',
    path: '/admin/restore',
    ...backupAccess,
    summary: 'Restore a backup into an empty directory beside the running store',
    tags: backupTags,
    body: z.strictObject({
      backup: z.string().optional().describe('as POST /admin/backup named it'),
      target_dir: z.string().optional().describe('absolute; empty, or not there yet'),
      ...refusedTenantFields,
    }),
    replies: { 200: restoreReport },
    example: { body: { backup: 'a backup', target_dir: '/restored' } },
    run: async (backupInvocation, { body: backupBody, context: httpContext }) => {
      const { backup: backupName, target_dir: restoreTarget } = backupBody;
      refuseTenantBackup(backupBody);
      if (backupName === undefined || restoreTarget === undefined)
        throw new ServiceError('REL_INVALID', 'backup and target_dir are required');
      backupInvocation.describe({ template: 'restore ?', literals: [backupName] });
      const runBackupWork = ({ signal: backupSignal, progress: backupProgress }: JobWork) =>
        httpContext.system.backups.restore(backupName, restoreTarget, { signal: backupSignal, onProgress: backupProgress });
      const backupJob = { kind: 'restore', about: backupName, unit: 'bytes', onDrain: 'cancel', run: runBackupWork } as const;
      return httpContext.jobs.start(backupJob, backupInvocation.caller).ended;
    },
  }),
];

function refuseTenantBackup(backupBody: { readonly tenant?: unknown; readonly tenant_id?: unknown }): void {
  if (backupBody.tenant !== undefined || backupBody.tenant_id !== undefined)
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'backups and restores cover the whole store: they need a token without a tenant',
    );
}
