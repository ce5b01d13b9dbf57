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
import { record } from '../../schemas/schema-check.ts';
import { reply, route, type Route } from '../route.ts';
import { submitNamed } from '../invoke.ts';
import { instant, toInstant } from '../../schemas/instants.ts';
import { idParams } from '../tenant-schemas.ts';

const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'administer', bucket: 'write' } as const;
const tags = ['tenants'];

const masks = z.enum(['redact', 'null', 'hash', 'last4', 'year']);

const target = z.strictObject({
  types: z.array(z.string()).min(1).max(1_024),
  where: z.string().nullable().optional().describe('Cedar condition over resource; null: every row'),
  columns: z.array(z.string()).max(1_024).nullable().optional().describe('null: every column'),
});

const terms = {
  assigner: z.string().describe('whose rows: a path of the tenant, which it is by default'),
  assignee: z.string().describe('who sees them: an organisation path'),
  target,
  permission: z.array(z.string()).min(1).max(16).describe('read, search, export, replay; read by default'),
  purposes: z.array(z.string()).max(256).describe('each with those below it; empty: any'),
  valid_from: instant.describe('ISO-8601 or nanoseconds; now by default'),
  valid_to: instant.nullable().describe('null: for ever'),
  history: z.enum(['from_start', 'full', 'current_only']).describe('current_only by default'),
  masking: record(masks).describe('by column'),
  onward_sharing: z.boolean().describe('true is not implemented'),
  aggregate_min_group: z.int().min(1).nullable().describe('not implemented'),
  terms_digest: z.string().nullable().describe('hex SHA-256 of a document that both sides signed elsewhere'),
};

const proposeBody = z
  .strictObject({ ...z.object(terms).partial().shape, assignee: terms.assignee, target })
  .meta({ id: 'ProposeAgreement' });

const state = z.enum(['accepted', 'active', 'suspended', 'revoked']);

const patchBody = z
  .strictObject({ state: state.optional(), ...z.object(terms).partial().shape })
  .refine(({ state: to, ...changed }) => (to === undefined) !== (Object.keys(changed).length === 0), 'either a state, or terms')
  .meta({ id: 'ChangeAgreement' });

const agreementReply = z
  .object({
    id: z.string(),
    state: z.enum(['proposed', 'accepted', 'active', 'suspended', 'revoked', 'expired']),
    sides: z.array(z.enum(['assigner', 'assignee'])).describe('what the tenant is in it'),
    ...terms,
    target: target.required(),
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
    ...changing,
    summary: 'Propose to share rows with another organisation',
    tags,
    params: idParams,
    body: proposeBody,
    replies: { 201: agreementReply },
    example: { params: { id: 'a tenant' }, body: { assignee: 'another tenant', target: { types: ['a type'] } } },
    run: async (invocation, { params: { id: tenant }, body, context }) => {
      const desk = invocation.tenants();
      const id = `agr_${context.ids.next()}`;
      const offered = termsOf(body, defaultsOf(tenant, context.clock.now()));
      await submitNamed(invocation, desk.proposal(tenant, id, offered));
      return reply(201, describeAgreement(desk.agreement(tenant, id)));
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/sharing',
    ...reading,
    summary: 'Agreements that a tenant is a side of',
    tags,
    params: idParams,
    replies: { 200: z.object({ agreements: z.array(agreementReply) }) },
    whileSuspended: true,
    example: { params: { id: 'a tenant' } },
    run: async (invocation, { params }) => {
      const agreements = invocation.tenants().agreements(params.id).map(describeAgreement);
      invocation.describe({ rowCount: agreements.length });
      return { agreements };
    },
  }),

  route({
    method: 'GET',
    path: '/tenants/:id/sharing/:aid',
    ...reading,
    summary: 'An agreement',
    tags,
    params: agreementParams,
    replies: { 200: agreementReply },
    whileSuspended: true,
    example: { params: { id: 'a tenant', aid: 'an agreement' } },
    run: async (invocation, { params }) => describeAgreement(invocation.tenants().agreement(params.id, params.aid)),
  }),

  route({
    method: 'PATCH',
    path: '/tenants/:id/sharing/:aid',
    ...changing,
    summary: 'Accept, activate, suspend, resume or revoke an agreement, or change what is still proposed',
    tags,
    params: agreementParams,
    body: patchBody,
    replies: { 200: agreementReply },
    example: { params: { id: 'a tenant', aid: 'an agreement' }, body: { state: 'revoked' } },
    run: async (invocation, { params, body }) => {
      const { id: tenant, aid } = params;
      const { state: to, ...changed } = body;
      const desk = invocation.tenants();
      const command =
        to === undefined
          ? desk.amendment(tenant, aid, termsOf(changed, desk.agreement(tenant, aid)))
          : desk.move(tenant, aid, to);
      if (command !== null) await submitNamed(invocation, command);
      return describeAgreement(desk.agreement(tenant, aid));
    },
  }),

  route({
    method: 'DELETE',
    path: '/tenants/:id/sharing/:aid',
    ...changing,
    summary: 'Revoke an agreement',
    tags,
    params: agreementParams,
    replies: { 200: agreementReply },
    example: { params: { id: 'a tenant', aid: 'an agreement' } },
    run: async (invocation, { params }) => {
      const { id: tenant, aid } = params;
      const desk = invocation.tenants();
      const command = desk.move(tenant, aid, 'revoked');
      if (command !== null) await submitNamed(invocation, command);
      return describeAgreement(desk.agreement(tenant, aid));
    },
  }),
];

type StatedTerms = Omit<z.infer<typeof patchBody>, 'state'>;

type Defaults = Omit<AgreementTerms, 'assignee' | 'types'> & Partial<Pick<AgreementTerms, 'assignee' | 'types'>>;

function defaultsOf(tenant: string, now: bigint): Defaults {
  return {
    assigner: tenant,
    where: null,
    columns: null,
    permission: ['read'],
    purposes: [],
    validFrom: now,
    validTo: FOREVER,
    history: 'current_only',
    masking: {},
    onwardSharing: false,
    aggregateMinGroup: null,
    termsDigest: null,
  };
}

function termsOf(body: StatedTerms, before: Defaults): AgreementTerms {
  const { target: named, valid_from: from, valid_to: to } = body;
  return {
    assigner: body.assigner ?? before.assigner,
    assignee: body.assignee ?? before.assignee ?? '',
    types: named?.types ?? before.types ?? [],
    where: named?.where === undefined ? before.where : named.where,
    columns: named?.columns === undefined ? before.columns : named.columns,
    permission: body.permission ?? before.permission,
    purposes: body.purposes ?? before.purposes,
    validFrom: from === undefined ? before.validFrom : toInstant(from),
    validTo: to === undefined ? before.validTo : to === null ? FOREVER : toInstant(to),
    history: body.history ?? before.history,
    masking: body.masking ?? before.masking,
    onwardSharing: body.onward_sharing ?? before.onwardSharing,
    aggregateMinGroup: body.aggregate_min_group === undefined ? before.aggregateMinGroup : body.aggregate_min_group,
    termsDigest: body.terms_digest === undefined ? before.termsDigest : body.terms_digest,
  };
}

function describeAgreement(agreement: AgreementView): z.infer<typeof agreementReply> {
  const { id, state: at, sides, assigner, assignee, types, where, columns, permission, purposes, events } = agreement;
  return {
    id,
    state: at,
    sides: [...sides],
    assigner,
    assignee,
    target: { types: [...types], where, columns: columns && [...columns] },
    permission: [...permission],
    purposes: [...purposes],
    valid_from: formatInstant(agreement.validFrom),
    valid_to: agreement.validTo === FOREVER ? null : formatInstant(agreement.validTo),
    history: agreement.history,
    masking: agreement.masking,
    onward_sharing: agreement.onwardSharing,
    aggregate_min_group: agreement.aggregateMinGroup,
    terms_digest: agreement.termsDigest,
    created_at: formatInstant(agreement.createdAt),
    activated_at: agreement.activatedAt === null ? null : formatInstant(agreement.activatedAt),
    events: events.map(({ change, principal, time }) => ({ change, principal, time: formatInstant(time) })),
  };
}
