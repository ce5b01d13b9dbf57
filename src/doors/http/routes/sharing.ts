/**
 * Sharing agreements: /tenants/:id/sharing. The assigner proposes (POST) and may change the terms until the assignee accepts;
 * either side moves its state by PATCH {state}; DELETE revokes. Both sides see the agreement and every move it made.
 *
 *   proposed ──accepted (assignee)──> accepted ──active (assigner)──> active <──active, suspended (assigner)──> suspended
 *   any of them ──revoked (either side)──> revoked; expired, when its time is over
 */
import { z } from 'zod';
import type { AgreementView } from '../../../governance/desk-contract.ts';
import type { AgreementTerms } from '../../../log/entries/entry.ts';
import { FOREVER, formatInstant } from '../../../log/values/timestamp.ts';
import { record } from '../../shared/schema-check.ts';
import { reply, route, type Route } from '../route.ts';
import { submitNamed } from '../invoke.ts';
import { instant, toInstant } from '../../shared/instants.ts';
import { idParams } from '../tenant-schemas.ts';

const sharingReading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const sharingChanging = { access: 'token', action: 'administer', bucket: 'write' } as const;
const sharingTags = ['tenants'];

const sharingMasks = z.enum(['redact', 'null', 'hash', 'last4', 'year']);

const sharingTarget = z.strictObject({
  types: z.array(z.string()).min(1).max(1_024),
  where: z.string().nullable().optional().describe('Cedar condition over resource; null: every row'),
  columns: z.array(z.string()).max(1_024).nullable().optional().describe('null: every column'),
});

const agreementTerms = {
  assigner: z.string().describe('whose rows: a path of the tenant, which it is by default'),
  assignee: z.string().describe('who sees them: an organisation path'),
  target: sharingTarget,
  permission: z.array(z.string()).min(1).max(16).describe('read, search, export, replay; read by default'),
  purposes: z.array(z.string()).max(256).describe('each with those below it; empty: any'),
  valid_from: instant.describe('ISO-8601 or nanoseconds; now by default'),
  valid_to: instant.nullable().describe('null: for ever'),
  history: z.enum(['from_start', 'full', 'current_only']).describe('current_only by default'),
  masking: record(sharingMasks).describe('by column'),
  onward_sharing: z.boolean().describe('true is not implemented'),
  aggregate_min_group: z.int().min(1).nullable().describe('not implemented'),
  terms_digest: z.string().nullable().describe('hex SHA-256 of a document that both sides signed elsewhere'),
};

const proposeAgreementBody = z
  .strictObject({ ...z.object(agreementTerms).partial().shape, assignee: agreementTerms.assignee, target: sharingTarget })
  .meta({ id: 'ProposeAgreement' });

const agreementState = z.enum(['accepted', 'active', 'suspended', 'revoked']);

const changeAgreementBody = z
  .strictObject({ state: agreementState.optional(), ...z.object(agreementTerms).partial().shape })
  .refine(
    ({ state: nextState, ...changedTerms }) => (nextState === undefined) !== (Object.keys(changedTerms).length === 0),
    'either a state, or terms',
  )
  .meta({ id: 'ChangeAgreement' });

const agreementReply = z
  .object({
    id: z.string(),
    state: z.enum(['proposed', 'accepted', 'active', 'suspended', 'revoked', 'expired']),
    sides: z.array(z.enum(['assigner', 'assignee'])).describe('what the tenant is in it'),
    ...agreementTerms,
    target: sharingTarget.required(),
    masking: z.record(z.string(), z.string()),
    created_at: z.string(),
    activated_at: z.string().nullable(),
    events: z.array(z.object({ change: z.string(), principal: z.string(), time: z.string() })).describe('every move, in order'),
  })
  .meta({ id: 'Agreement' });

const agreementParams = z.object({ id: z.string(), aid: z.string() });

export const sharingRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/tenants/:id/sharing',
    ...sharingChanging,
    summary: 'Propose to share rows with another organisation',
    tags: sharingTags,
    params: idParams,
    body: proposeAgreementBody,
    replies: { 201: agreementReply },
    example: { params: { id: 'a tenant' }, body: { assignee: 'another tenant', target: { types: ['a type'] } } },
    run: async (sharingInvocation, { params: { id: assignerTenant }, body: agreementBody, context: httpContext }) => {
      const agreementDesk = sharingInvocation.tenants();
      const agreementId = `agr_${httpContext.ids.next()}`;
      const offeredTerms = readAgreementTerms(agreementBody, agreementDefaults(assignerTenant, httpContext.clock.now()));
      await submitNamed(sharingInvocation, agreementDesk.proposal(assignerTenant, agreementId, offeredTerms));
      return reply(201, describeAgreement(agreementDesk.agreement(assignerTenant, agreementId)));
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/sharing',
    ...sharingReading,
    summary: 'Agreements that a tenant is a side of',
    tags: sharingTags,
    params: idParams,
    replies: { 200: z.object({ agreements: z.array(agreementReply) }) },
    whileSuspended: true,
    example: { params: { id: 'a tenant' } },
    run: async (sharingInvocation, { params: agreementRoute }) => {
      const agreementViews = sharingInvocation.tenants().agreements(agreementRoute.id).map(describeAgreement);
      sharingInvocation.describe({ rowCount: agreementViews.length });
      return { agreements: agreementViews };
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/sharing/:aid',
    ...sharingReading,
    summary: 'An agreement',
    tags: sharingTags,
    params: agreementParams,
    replies: { 200: agreementReply },
    whileSuspended: true,
    example: { params: { id: 'a tenant', aid: 'an agreement' } },
    run: async (sharingInvocation, { params: agreementRoute }) =>
      describeAgreement(sharingInvocation.tenants().agreement(agreementRoute.id, agreementRoute.aid)),
  }),

  route({
    method: 'PATCH',
    path: '/tenants/:id/sharing/:aid',
    ...sharingChanging,
    summary: 'Accept, activate, suspend, resume or revoke an agreement, or change what is still proposed',
    tags: sharingTags,
    params: agreementParams,
    body: changeAgreementBody,
    replies: { 200: agreementReply },
    example: { params: { id: 'a tenant', aid: 'an agreement' }, body: { state: 'revoked' } },
    run: async (sharingInvocation, { params: agreementRoute, body: agreementBody }) => {
      const { id: assignerTenant, aid: agreementId } = agreementRoute;
      const { state: nextState, ...changedTerms } = agreementBody;
      const agreementDesk = sharingInvocation.tenants();
      const agreementCommand =
        nextState === undefined
          ? agreementDesk.amendment(
              assignerTenant,
              agreementId,
              readAgreementTerms(changedTerms, agreementDesk.agreement(assignerTenant, agreementId)),
            )
          : agreementDesk.move(assignerTenant, agreementId, nextState);
      if (agreementCommand !== null) await submitNamed(sharingInvocation, agreementCommand);
      return describeAgreement(agreementDesk.agreement(assignerTenant, agreementId));
    },
  }),

  route({
    method: 'DELETE',
    path: '/tenants/:id/sharing/:aid',
    ...sharingChanging,
    summary: 'Revoke an agreement',
    tags: sharingTags,
    params: agreementParams,
    replies: { 200: agreementReply },
    example: { params: { id: 'a tenant', aid: 'an agreement' } },
    run: async (sharingInvocation, { params: agreementRoute }) => {
      const { id: assignerTenant, aid: agreementId } = agreementRoute;
      const agreementDesk = sharingInvocation.tenants();
      const agreementCommand = agreementDesk.move(assignerTenant, agreementId, 'revoked');
      if (agreementCommand !== null) await submitNamed(sharingInvocation, agreementCommand);
      return describeAgreement(agreementDesk.agreement(assignerTenant, agreementId));
    },
  }),
];

type StatedTerms = Omit<z.infer<typeof changeAgreementBody>, 'state'>;

type AgreementDefaults = Omit<AgreementTerms, 'assignee' | 'types'> & Partial<Pick<AgreementTerms, 'assignee' | 'types'>>;

function agreementDefaults(assignerTenant: string, agreedNow: bigint): AgreementDefaults {
  return {
    assigner: assignerTenant,
    where: null,
    columns: null,
    permission: ['read'],
    purposes: [],
    validFrom: agreedNow,
    validTo: FOREVER,
    history: 'current_only',
    masking: {},
    onwardSharing: false,
    aggregateMinGroup: null,
    termsDigest: null,
  };
}

function readAgreementTerms(statedTerms: StatedTerms, termsBefore: AgreementDefaults): AgreementTerms {
  const { target: statedTarget, valid_from: statedFrom, valid_to: statedTo } = statedTerms;
  return {
    assigner: statedTerms.assigner ?? termsBefore.assigner,
    assignee: statedTerms.assignee ?? termsBefore.assignee ?? '',
    types: statedTarget?.types ?? termsBefore.types ?? [],
    where: statedTarget?.where === undefined ? termsBefore.where : statedTarget.where,
    columns: statedTarget?.columns === undefined ? termsBefore.columns : statedTarget.columns,
    permission: statedTerms.permission ?? termsBefore.permission,
    purposes: statedTerms.purposes ?? termsBefore.purposes,
    validFrom: statedFrom === undefined ? termsBefore.validFrom : toInstant(statedFrom),
    validTo: statedTo === undefined ? termsBefore.validTo : statedTo === null ? FOREVER : toInstant(statedTo),
    history: statedTerms.history ?? termsBefore.history,
    masking: statedTerms.masking ?? termsBefore.masking,
    onwardSharing: statedTerms.onward_sharing ?? termsBefore.onwardSharing,
    aggregateMinGroup:
      statedTerms.aggregate_min_group === undefined ? termsBefore.aggregateMinGroup : statedTerms.aggregate_min_group,
    termsDigest: statedTerms.terms_digest === undefined ? termsBefore.termsDigest : statedTerms.terms_digest,
  };
}

function describeAgreement(agreement: AgreementView): z.infer<typeof agreementReply> {
  const {
    id: agreementId,
    state: agreementStateAt,
    sides: agreementSides,
    assigner: assignerPath,
    assignee: assigneePath,
    types: sharedTypes,
    where: sharedRows,
    columns: sharedColumns,
    permission: sharedPermission,
    purposes: sharedPurposes,
    events: agreementEvents,
  } = agreement;
  return {
    id: agreementId,
    state: agreementStateAt,
    sides: [...agreementSides],
    assigner: assignerPath,
    assignee: assigneePath,
    target: { types: [...sharedTypes], where: sharedRows, columns: sharedColumns && [...sharedColumns] },
    permission: [...sharedPermission],
    purposes: [...sharedPurposes],
    valid_from: formatInstant(agreement.validFrom),
    valid_to: agreement.validTo === FOREVER ? null : formatInstant(agreement.validTo),
    history: agreement.history,
    masking: agreement.masking,
    onward_sharing: agreement.onwardSharing,
    aggregate_min_group: agreement.aggregateMinGroup,
    terms_digest: agreement.termsDigest,
    created_at: formatInstant(agreement.createdAt),
    activated_at: agreement.activatedAt === null ? null : formatInstant(agreement.activatedAt),
    events: agreementEvents.map(({ change: agreementChange, principal, time: changedAt }) => ({
      change: agreementChange,
      principal,
      time: formatInstant(changedAt),
    })),
  };
}
