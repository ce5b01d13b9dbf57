/**
 * Sharing agreements as both sides make them: which move leads where, and which side makes it. Pure.
 *
 *   proposed ──accepted──> accepted ──activated──> active ──suspended──> suspended
 *      │      (assignee)      │      (assigner)     │  <──resumed──        │
 *      └──────────────────────┴─────────────────────┴──────────────────────┴──> revoked (either side) | expired (the clock)
 */
import { isDeepStrictEqual } from 'node:util';
import { ServiceError } from '../../errors.ts';
import {
  type AgreementBody,
  type AgreementRecord,
  type AgreementState,
  type AgreementTerms,
  type EntryDraft,
  maskKinds,
  sharedHistories,
} from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { checkIdentifier, checkText } from '../../log/values/value.ts';
import type { AgreementSide, ChangeAgreement, MoveAgreement, ProposeAgreement } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import type { Tenants } from './projection.ts';
import { checkPath, covers, recordDraft, tenantOfPath } from './tenant-drafts.ts';

interface AgreementMove {
  readonly change: AgreementBody['change'];
  readonly by: readonly AgreementSide[];
}

/** The administrator may cut back what is shared, and never consents in anybody's place. */
const revokedMove: AgreementMove = { change: 'revoked', by: ['assigner', 'assignee', 'administrator'] };
const expiredMove: AgreementMove = { change: 'expired', by: ['clock'] };

const agreementMoves: Readonly<Record<AgreementState, Readonly<Partial<Record<AgreementState, AgreementMove>>>>> = {
  proposed: { accepted: { change: 'accepted', by: ['assignee'] }, revoked: revokedMove, expired: expiredMove },
  accepted: { active: { change: 'activated', by: ['assigner'] }, revoked: revokedMove, expired: expiredMove },
  active: { suspended: { change: 'suspended', by: ['assigner', 'administrator'] }, revoked: revokedMove, expired: expiredMove },
  suspended: { active: { change: 'resumed', by: ['assigner'] }, revoked: revokedMove, expired: expiredMove },
  revoked: {},
  expired: {},
};

/** Whether the move exists and is this side's to make; the clock's own judgement, `stateAt`, comes on top. */
export function mayMove(
  agreement: Pick<AgreementRecord, 'state'>,
  movedState: AgreementState,
  moverSide: AgreementSide,
): boolean {
  return agreementMoves[agreement.state][movedState]?.by.includes(moverSide) === true;
}

/** Nothing leads on from here. */
export function isEnded({ state }: Pick<AgreementRecord, 'state'>): boolean {
  return state === 'revoked' || state === 'expired';
}

/** Its state at an instant: from `validTo` on it has expired, whether or not anybody has noticed. */
export function stateAt(agreement: Pick<AgreementRecord, 'state' | 'validTo'>, instant: bigint): AgreementState {
  return !isEnded(agreement) && instant >= agreement.validTo ? 'expired' : agreement.state;
}

/** Whether rows are shared under it at an instant. */
export function isInForce(agreement: Pick<AgreementRecord, 'state' | 'validFrom' | 'validTo'>, instant: bigint): boolean {
  return instant >= agreement.validFrom && stateAt(agreement, instant) === 'active';
}

const termNamesMax = 1_000;
const agreementConditionMax = 65_536;
const standingAgreementsMax = 1_000;

export function decidePropose(command: ProposeAgreement, tenants: Tenants, context: DecideContext, next: NextPosition): Decision {
  const { id: agreementId, terms: proposedTerms } = command;
  checkIdentifier(agreementId, 'the id of an agreement');
  checkAgreementTerms(proposedTerms, tenants, next);
  if (tenants.agreement(agreementId)) throw new ServiceError('REL_CONFLICT', 'an agreement with this id exists');
  const assigningTenant = tenantOfPath(proposedTerms.assigner);
  const liveAgreements = tenants
    .agreementsOf(assigningTenant)
    .filter((earlierAgreement) => !isEnded(earlierAgreement) && tenantOfPath(earlierAgreement.assigner) === assigningTenant);
  if (liveAgreements.length >= standingAgreementsMax) {
    throw new ServiceError('REL_CONFLICT', `a tenant shares rows under at most ${standingAgreementsMax} agreements`);
  }
  const proposedAgreement: AgreementRecord = {
    ...agreementTermsOf(proposedTerms),
    id: agreementId,
    state: 'proposed',
    createdAt: next.time,
    activatedAt: null,
  };
  return decideAgreement(
    'propose-agreement',
    { kind: 'agreement', change: 'proposed', agreement: proposedAgreement },
    context,
    next,
  );
}

/** REL_CONFLICT for a move that does not exist, REL_ACL for one that is another side's. */
export function decideMove(command: MoveAgreement, tenants: Tenants, context: DecideContext, next: NextPosition): Decision {
  const { id: agreementId, to: movedState, side: moverSide } = command;
  const agreementBefore = requireAgreement(agreementId, tenants);
  const agreementMove = agreementMoves[agreementBefore.state][movedState];
  if (!agreementMove) throw wrongMoveError(agreementBefore.state, movedState);
  if (!mayMove(agreementBefore, movedState, moverSide))
    throw new ServiceError('REL_ACL', `${agreementSideNames[moverSide]} may not make an agreement ${movedState}`);
  const hasAgreementExpired = stateAt(agreementBefore, next.time) === 'expired';
  if (hasAgreementExpired !== (movedState === 'expired'))
    throw hasAgreementExpired ? wrongMoveError('expired', movedState) : new ServiceError('REL_CONFLICT', 'it has not expired');
  const activatedAt = movedState === 'active' ? (agreementBefore.activatedAt ?? next.time) : agreementBefore.activatedAt;
  const movedAgreement = { ...agreementBefore, state: movedState, activatedAt };
  return decideAgreement(
    'move-agreement',
    { kind: 'agreement', change: agreementMove.change, agreement: movedAgreement },
    context,
    next,
  );
}

/** Terms may change until a side has consented to them; the same terms again are a no-op. */
export function decideChange(command: ChangeAgreement, tenants: Tenants, context: DecideContext, next: NextPosition): Decision {
  const { id: agreementId, terms: changedTerms } = command;
  const agreementBefore = requireAgreement(agreementId, tenants);
  checkAgreementTerms(changedTerms, tenants, next);
  const agreementState = stateAt(agreementBefore, next.time);
  if (agreementState !== 'proposed')
    throw new ServiceError('REL_CONFLICT', `the terms of an agreement that is ${agreementState} cannot change`);
  if (changedTerms.assigner !== agreementBefore.assigner || changedTerms.assignee !== agreementBefore.assignee) {
    throw new ServiceError('REL_CONFLICT', 'assigner and assignee of an agreement cannot change');
  }
  const changedAgreement = { ...agreementBefore, ...agreementTermsOf(changedTerms) };
  if (isDeepStrictEqual(changedAgreement, agreementBefore)) return decideOne('change-agreement', agreementId, [], next);
  return decideAgreement(
    'change-agreement',
    { kind: 'agreement', change: 'changed', agreement: changedAgreement },
    context,
    next,
  );
}

/** Ends all agreements of a tenant that is deleted. */
export function endings(tenant: string, tenants: Tenants, context: DecideContext, next: NextPosition): EntryDraft[] {
  return tenants
    .agreementsOf(tenant)
    .filter((endedAgreement) => !isEnded(endedAgreement))
    .map((endedAgreement) => {
      const endedState = stateAt(endedAgreement, next.time) === 'expired' ? 'expired' : 'revoked';
      return recordDraft(
        { kind: 'agreement', change: endedState, agreement: { ...endedAgreement, state: endedState } },
        context.entry,
      );
    });
}

const agreementSideNames: Readonly<Record<AgreementSide, string>> = {
  assigner: 'the assigner',
  assignee: 'the assignee',
  administrator: 'the administrator',
  clock: 'the clock',
};

function decideAgreement(
  agreementCommand: 'propose-agreement' | 'move-agreement' | 'change-agreement',
  agreementBody: AgreementBody,
  context: DecideContext,
  next: NextPosition,
): Decision {
  return decideOne(agreementCommand, agreementBody.agreement.id, [recordDraft(agreementBody, context.entry)], next);
}

function requireAgreement(agreementId: string, tenants: Tenants): AgreementRecord {
  const knownAgreement = tenants.agreement(agreementId);
  if (!knownAgreement) throw new ServiceError('REL_NOT_FOUND', 'no such agreement');
  return knownAgreement.record;
}

function wrongMoveError(stateBefore: AgreementState, movedState: AgreementState): ServiceError {
  return new ServiceError('REL_CONFLICT', `an agreement that is ${stateBefore} can't become ${movedState}`);
}

/** Nothing but the terms, whatever else the caller's object holds. */
function agreementTermsOf(agreementTerms: AgreementTerms): AgreementTerms {
  const { assigner, assignee, types, where, columns, permission, purposes } = agreementTerms;
  const { validFrom, validTo, history, masking, onwardSharing, aggregateMinGroup, termsDigest } = agreementTerms;
  return {
    assigner,
    assignee,
    types,
    where,
    columns,
    permission,
    purposes,
    validFrom,
    validTo,
    history,
    masking,
    onwardSharing,
    aggregateMinGroup,
    termsDigest,
  };
}

function checkAgreementTerms(agreementTerms: AgreementTerms, tenants: Tenants, next: NextPosition): void {
  const { assigner, assignee, columns, where: agreementCondition, termsDigest, aggregateMinGroup } = agreementTerms;
  checkPath(assigner, 'the assigner');
  checkPath(assignee, 'the assignee');
  if (covers(assignee, assigner)) throw new ServiceError('REL_INVALID', 'the assignee sees the rows of the assigner anyway');
  // The assignee is not looked at: an answer would tell whether there is such a tenant, and in what state it is.
  const assignerState = tenants.tenant(tenantOfPath(assigner))?.record.state ?? 'active';
  if (assignerState !== 'active')
    throw new ServiceError('REL_CONFLICT', `the tenant of ${JSON.stringify(assigner)} is ${assignerState}`);
  checkTermNames(agreementTerms.types, 'type', 1);
  if (columns !== null) checkTermNames(columns, 'column', 1);
  checkTermNames(agreementTerms.permission, 'permission', 1);
  checkTermNames(agreementTerms.purposes, 'purpose', 0);
  checkTermNames(Object.keys(agreementTerms.masking), 'masked column', 0);
  if (!Object.values(agreementTerms.masking).every((maskKind) => maskKinds.includes(maskKind))) {
    throw new ServiceError('REL_INVALID', `a mask must be one of ${maskKinds.join(', ')}`);
  }
  if (!sharedHistories.includes(agreementTerms.history)) {
    throw new ServiceError('REL_INVALID', `the history of an agreement must be one of ${sharedHistories.join(', ')}`);
  }
  if (agreementCondition !== null) {
    checkText(agreementCondition, 'the condition of an agreement');
    if (agreementCondition.length > agreementConditionMax)
      throw new ServiceError('REL_INVALID', `a condition has at most ${agreementConditionMax} characters`);
  }
  if (agreementTerms.validTo <= agreementTerms.validFrom || agreementTerms.validTo <= next.time) {
    throw new ServiceError('REL_INVALID', 'an agreement must end after it begins, and in the future');
  }
  if (aggregateMinGroup !== null && (!Number.isSafeInteger(aggregateMinGroup) || aggregateMinGroup < 1)) {
    throw new ServiceError('REL_INVALID', 'aggregate_min_group must be a whole number of 1 or more');
  }
  if (termsDigest !== null && !/^[0-9a-f]{64}$/.test(termsDigest)) {
    throw new ServiceError('REL_INVALID', 'the digest of the terms must be a SHA-256 in lower-case hex');
  }
}

function checkTermNames(termNames: readonly string[], termKind: string, termNamesMin: number): void {
  if (termNames.length < termNamesMin)
    throw new ServiceError('REL_INVALID', `an agreement names at least ${termNamesMin} ${termKind}`);
  if (termNames.length > termNamesMax)
    throw new ServiceError('REL_INVALID', `an agreement names at most ${termNamesMax} of a kind: ${termKind}`);
  for (const termName of termNames) checkIdentifier(termName, `a ${termKind} of an agreement`);
  if (new Set(termNames).size < termNames.length) throw new ServiceError('REL_INVALID', `an agreement names a ${termKind} twice`);
}
