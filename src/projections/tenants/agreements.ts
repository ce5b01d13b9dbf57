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

interface Move {
  readonly change: AgreementBody['change'];
  readonly by: readonly AgreementSide[];
}

/** The administrator may cut back what is shared, and never consents in anybody's place. */
const revoked: Move = { change: 'revoked', by: ['assigner', 'assignee', 'administrator'] };
const expired: Move = { change: 'expired', by: ['clock'] };

const moves: Readonly<Record<AgreementState, Readonly<Partial<Record<AgreementState, Move>>>>> = {
  proposed: { accepted: { change: 'accepted', by: ['assignee'] }, revoked, expired },
  accepted: { active: { change: 'activated', by: ['assigner'] }, revoked, expired },
  active: { suspended: { change: 'suspended', by: ['assigner', 'administrator'] }, revoked, expired },
  suspended: { active: { change: 'resumed', by: ['assigner'] }, revoked, expired },
  revoked: {},
  expired: {},
};

/** Whether the move exists and is this side's to make; the clock's own judgement, `stateAt`, comes on top. */
export function mayMove(agreement: Pick<AgreementRecord, 'state'>, to: AgreementState, side: AgreementSide): boolean {
  return moves[agreement.state][to]?.by.includes(side) === true;
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

const listedMax = 1_000;
const whereMax = 65_536;
const standingMax = 1_000;

export function decidePropose(command: ProposeAgreement, tenants: Tenants, context: DecideContext, next: NextPosition): Decision {
  const { id, terms } = command;
  checkIdentifier(id, 'the id of an agreement');
  checkTerms(terms, tenants, next);
  if (tenants.agreement(id)) throw new ServiceError('REL_CONFLICT', 'an agreement with this id exists');
  const assigner = tenantOfPath(terms.assigner);
  const liveAgreements = tenants
    .agreementsOf(assigner)
    .filter((each) => !isEnded(each) && tenantOfPath(each.assigner) === assigner);
  if (liveAgreements.length >= standingMax) {
    throw new ServiceError('REL_CONFLICT', `a tenant shares rows under at most ${standingMax} agreements`);
  }
  const agreement: AgreementRecord = { ...termsOf(terms), id, state: 'proposed', createdAt: next.time, activatedAt: null };
  return decide('propose-agreement', { kind: 'agreement', change: 'proposed', agreement }, context, next);
}

/** REL_CONFLICT for a move that does not exist, REL_ACL for one that is another side's. */
export function decideMove(command: MoveAgreement, tenants: Tenants, context: DecideContext, next: NextPosition): Decision {
  const { id, to, side } = command;
  const agreement = requireAgreement(id, tenants);
  const move = moves[agreement.state][to];
  if (!move) throw wrongMove(agreement.state, to);
  if (!mayMove(agreement, to, side)) throw new ServiceError('REL_ACL', `${sideNames[side]} may not make an agreement ${to}`);
  const past = stateAt(agreement, next.time) === 'expired';
  if (past !== (to === 'expired')) throw past ? wrongMove('expired', to) : new ServiceError('REL_CONFLICT', 'it has not expired');
  const activatedAt = to === 'active' ? (agreement.activatedAt ?? next.time) : agreement.activatedAt;
  const moved = { ...agreement, state: to, activatedAt };
  return decide('move-agreement', { kind: 'agreement', change: move.change, agreement: moved }, context, next);
}

/** Terms may change until a side has consented to them; the same terms again are a no-op. */
export function decideChange(command: ChangeAgreement, tenants: Tenants, context: DecideContext, next: NextPosition): Decision {
  const { id, terms } = command;
  const agreement = requireAgreement(id, tenants);
  checkTerms(terms, tenants, next);
  const state = stateAt(agreement, next.time);
  if (state !== 'proposed') throw new ServiceError('REL_CONFLICT', `the terms of an agreement that is ${state} cannot change`);
  if (terms.assigner !== agreement.assigner || terms.assignee !== agreement.assignee) {
    throw new ServiceError('REL_CONFLICT', 'assigner and assignee of an agreement cannot change');
  }
  const changed = { ...agreement, ...termsOf(terms) };
  if (isDeepStrictEqual(changed, agreement)) return decideOne('change-agreement', id, [], next);
  return decide('change-agreement', { kind: 'agreement', change: 'changed', agreement: changed }, context, next);
}

/** Ends all agreements of a tenant that is deleted. */
export function endings(tenant: string, tenants: Tenants, context: DecideContext, next: NextPosition): EntryDraft[] {
  return tenants
    .agreementsOf(tenant)
    .filter((agreement) => !isEnded(agreement))
    .map((agreement) => {
      const to = stateAt(agreement, next.time) === 'expired' ? 'expired' : 'revoked';
      return recordDraft({ kind: 'agreement', change: to, agreement: { ...agreement, state: to } }, context.entry);
    });
}

const sideNames: Readonly<Record<AgreementSide, string>> = {
  assigner: 'the assigner',
  assignee: 'the assignee',
  administrator: 'the administrator',
  clock: 'the clock',
};

function decide(
  kind: 'propose-agreement' | 'move-agreement' | 'change-agreement',
  body: AgreementBody,
  context: DecideContext,
  next: NextPosition,
): Decision {
  return decideOne(kind, body.agreement.id, [recordDraft(body, context.entry)], next);
}

function requireAgreement(id: string, tenants: Tenants): AgreementRecord {
  const agreement = tenants.agreement(id);
  if (!agreement) throw new ServiceError('REL_NOT_FOUND', 'no such agreement');
  return agreement.record;
}

function wrongMove(from: AgreementState, to: AgreementState): ServiceError {
  return new ServiceError('REL_CONFLICT', `an agreement that is ${from} can't become ${to}`);
}

/** Nothing but the terms, whatever else the caller's object holds. */
function termsOf(terms: AgreementTerms): AgreementTerms {
  const { assigner, assignee, types, where, columns, permission, purposes } = terms;
  const { validFrom, validTo, history, masking, onwardSharing, aggregateMinGroup, termsDigest } = terms;
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

function checkTerms(terms: AgreementTerms, tenants: Tenants, next: NextPosition): void {
  const { assigner, assignee, columns, where, termsDigest, aggregateMinGroup } = terms;
  checkPath(assigner, 'the assigner');
  checkPath(assignee, 'the assignee');
  if (covers(assignee, assigner)) throw new ServiceError('REL_INVALID', 'the assignee sees the rows of the assigner anyway');
  // The assignee is not looked at: an answer would tell whether there is such a tenant, and in what state it is.
  const state = tenants.tenant(tenantOfPath(assigner))?.record.state ?? 'active';
  if (state !== 'active') throw new ServiceError('REL_CONFLICT', `the tenant of ${JSON.stringify(assigner)} is ${state}`);
  checkNames(terms.types, 'type', 1);
  if (columns !== null) checkNames(columns, 'column', 1);
  checkNames(terms.permission, 'permission', 1);
  checkNames(terms.purposes, 'purpose', 0);
  checkNames(Object.keys(terms.masking), 'masked column', 0);
  if (!Object.values(terms.masking).every((kind) => maskKinds.includes(kind))) {
    throw new ServiceError('REL_INVALID', `a mask must be one of ${maskKinds.join(', ')}`);
  }
  if (!sharedHistories.includes(terms.history)) {
    throw new ServiceError('REL_INVALID', `the history of an agreement must be one of ${sharedHistories.join(', ')}`);
  }
  if (where !== null) {
    checkText(where, 'the condition of an agreement');
    if (where.length > whereMax) throw new ServiceError('REL_INVALID', `a condition has at most ${whereMax} characters`);
  }
  if (terms.validTo <= terms.validFrom || terms.validTo <= next.time) {
    throw new ServiceError('REL_INVALID', 'an agreement must end after it begins, and in the future');
  }
  if (aggregateMinGroup !== null && (!Number.isSafeInteger(aggregateMinGroup) || aggregateMinGroup < 1)) {
    throw new ServiceError('REL_INVALID', 'aggregate_min_group must be a whole number of 1 or more');
  }
  if (termsDigest !== null && !/^[0-9a-f]{64}$/.test(termsDigest)) {
    throw new ServiceError('REL_INVALID', 'the digest of the terms must be a SHA-256 in lower-case hex');
  }
}

function checkNames(names: readonly string[], what: string, least: number): void {
  if (names.length < least) throw new ServiceError('REL_INVALID', `an agreement names at least ${least} ${what}`);
  if (names.length > listedMax)
    throw new ServiceError('REL_INVALID', `an agreement names at most ${listedMax} of a kind: ${what}`);
  for (const name of names) checkIdentifier(name, `a ${what} of an agreement`);
  if (new Set(names).size < names.length) throw new ServiceError('REL_INVALID', `an agreement names a ${what} twice`);
}
