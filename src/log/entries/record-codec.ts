/**
 * Bodies that are one record of names, texts and numbers (policies, tenants, sharing agreements, erasures, retention), as text: RFC 8785 JSON,
 * 64-bit integers as decimal texts. A record has one spelling, and any other is refused. Changing a member needs a fixture
 * and must read what was written before.
 */
import { canonicalJson, type Json } from '../values/canonical-json.ts';
import { malformedError } from '../bytes/byte-stream.ts';
import {
  type AgreementBody,
  type AgreementRecord,
  agreementStates,
  type ErasedVersions,
  type ErasureBody,
  type MaskKind,
  maskKinds,
  type PolicyBody,
  quotaNames,
  type RedactionBody,
  type RetentionBody,
  sharedHistories,
  type TenantBody,
  type TenantQuota,
  type TenantRecord,
} from './entry.ts';
import { compareText, I64_MAX, I64_MIN, limits } from '../values/value.ts';

export type RecordBody = PolicyBody | TenantBody | AgreementBody | ErasureBody | RetentionBody | RedactionBody;

export function recordText(recordBody: RecordBody): string {
  switch (recordBody.kind) {
    case 'policy':
      return canonicalJson({ change: recordBody.change, id: recordBody.id, text: recordBody.text, digest: recordBody.digest });
    case 'tenant':
      return canonicalJson({
        change: recordBody.change,
        manner: recordBody.manner,
        tenant: withBigintsAsTexts(recordBody.tenant),
      });
    case 'agreement':
      return canonicalJson({ change: recordBody.change, agreement: withBigintsAsTexts(recordBody.agreement) });
    case 'erasure': {
      const { kind: _, ...recordMembers } = recordBody;
      return canonicalJson(recordMembers as unknown as Json);
    }
    case 'redaction':
      return canonicalJson({ through: recordBody.through, rows: recordBody.rows });
    case 'retention': {
      const { kind: _, ...recordMembers } = recordBody;
      return canonicalJson(withBigintsAsTexts(recordMembers));
    }
  }
}

/** Reads text that may be anything: REL_STORAGE for what `recordText` would not have written. */
export function recordOf(kind: RecordBody['kind'], recordJson: string): RecordBody {
  const recordMembers = requireObject(parseCanonicalRecord(recordJson));
  switch (kind) {
    case 'policy':
      return readPolicyBody(recordMembers);
    case 'tenant':
      return readTenantBody(recordMembers);
    case 'agreement':
      return readAgreementBody(recordMembers);
    case 'erasure':
      return readErasureBody(recordMembers);
    case 'retention':
      return readRetentionBody(recordMembers);
    case 'redaction':
      return readRedactionBody(recordMembers);
  }
}

type RecordMembers = Readonly<Record<string, unknown>>;

/** 64-bit integers as texts; everything else is JSON as it stands. */
function withBigintsAsTexts(bodyRecord: TenantRecord | AgreementRecord | Omit<RetentionBody, 'kind'>): Json {
  const textMembers = Object.entries(bodyRecord).map(([memberName, memberValue]): [string, Json] => [
    memberName,
    typeof memberValue === 'bigint' ? String(memberValue) : (memberValue as Json),
  ]);
  return Object.fromEntries(textMembers);
}

function parseCanonicalRecord(recordJson: string): unknown {
  let recordValue: Json;
  let canonicalText: string;
  try {
    recordValue = JSON.parse(recordJson) as Json;
    if (!isShallow(recordValue, recordDepth)) throw malformedError('a record nested too deep');
    canonicalText = canonicalJson(recordValue);
  } catch {
    throw malformedError('a record that is no proper JSON');
  }
  if (canonicalText !== recordJson) throw malformedError('a record in another spelling');
  return recordValue;
}

/** A search configuration may be as deep as any JSON, inside its tenant, inside its record. */
const recordDepth = limits.jsonDepth + 3;

/** True when arrays and objects lie in each other at most `jsonDepth` deep. */
export function isShallow(nestedValue: unknown, jsonDepth: number): boolean {
  if (typeof nestedValue !== 'object' || nestedValue === null) return true;
  return jsonDepth > 0 && Object.values(nestedValue).every((member) => isShallow(member, jsonDepth - 1));
}

function readPolicyBody(policyMembers: RecordMembers): PolicyBody {
  checkMemberNames(policyMembers, ['change', 'digest', 'id', 'text']);
  return {
    kind: 'policy',
    change: requireWord(policyMembers['change'], ['installed', 'deleted']),
    id: requireText(policyMembers['id']),
    text: requireText(policyMembers['text']),
    digest: requireText(policyMembers['digest']),
  };
}

const tenantChanges = ['created', 'changed', 'suspended', 'reactivated', 'deleted', 'purged'] as const;
const deletionManners = ['soft', 'purge', 'tombstone'] as const;

function readTenantBody(tenantBodyMembers: RecordMembers): TenantBody {
  checkMemberNames(tenantBodyMembers, ['change', 'manner', 'tenant']);
  return {
    kind: 'tenant',
    change: requireWord(tenantBodyMembers['change'], tenantChanges),
    manner: tenantBodyMembers['manner'] === null ? null : requireWord(tenantBodyMembers['manner'], deletionManners),
    tenant: readTenantRecord(requireObject(tenantBodyMembers['tenant'])),
  };
}

function readTenantRecord(recordMembers: RecordMembers): TenantRecord {
  checkMemberNames(recordMembers, ['changedAt', 'createdAt', 'id', 'members', 'name', 'quota', 'search', 'state', 'tier']);
  const tenantMembers = requireList(recordMembers['members']).map((tenantMember) => {
    const { principal, role, ...otherMembers } = requireObject(tenantMember);
    checkMemberNames(otherMembers, []);
    return { principal: requireText(principal), role: requireText(role) };
  });
  if (tenantMembers.some(({ principal }, i) => i > 0 && compareText(tenantMembers[i - 1]!.principal, principal) >= 0)) {
    throw malformedError('members out of order');
  }
  return {
    id: requireText(recordMembers['id']),
    name: requireText(recordMembers['name']),
    tier: requireText(recordMembers['tier']),
    state: requireWord(recordMembers['state'], ['active', 'suspended', 'deleted']),
    quota: readTenantQuota(requireObject(recordMembers['quota'])),
    search: requireObject(recordMembers['search']) as TenantRecord['search'],
    members: tenantMembers,
    createdAt: requireI64(recordMembers['createdAt']),
    changedAt: requireI64(recordMembers['changedAt']),
  };
}

function readTenantQuota(quotaMembers: RecordMembers): TenantQuota {
  checkMemberNames(quotaMembers, quotaNames);
  return Object.fromEntries(
    quotaNames.map((quotaName) => [quotaName, quotaMembers[quotaName] === null ? null : requireCount(quotaMembers[quotaName])]),
  ) as Record<keyof TenantQuota, number | null>;
}

const agreementChanges = ['proposed', 'accepted', 'activated', 'suspended', 'resumed', 'revoked', 'expired', 'changed'] as const;

const agreementMembers = [
  'activatedAt',
  'aggregateMinGroup',
  'assignee',
  'assigner',
  'columns',
  'createdAt',
  'history',
  'id',
  'masking',
  'onwardSharing',
  'permission',
  'purposes',
  'state',
  'termsDigest',
  'types',
  'validFrom',
  'validTo',
  'where',
] as const;

function readAgreementBody(bodyMembers: RecordMembers): AgreementBody {
  checkMemberNames(bodyMembers, ['agreement', 'change']);
  const agreementChange = requireWord(bodyMembers['change'], agreementChanges);
  const agreementFields = requireObject(bodyMembers['agreement']);
  checkMemberNames(agreementFields, agreementMembers);
  const { activatedAt, aggregateMinGroup, columns, onwardSharing, termsDigest, where } = agreementFields;
  if (typeof onwardSharing !== 'boolean') throw malformedError('a record with another type of member');
  const agreementMasks = Object.entries(requireObject(agreementFields['masking'])).map(([name, kind]): [string, MaskKind] => [
    name,
    requireWord(kind, maskKinds),
  ]);
  const agreementRecord: AgreementRecord = {
    id: requireText(agreementFields['id']),
    assigner: requireText(agreementFields['assigner']),
    assignee: requireText(agreementFields['assignee']),
    types: requireTexts(agreementFields['types']),
    where: where === null ? null : requireText(where),
    columns: columns === null ? null : requireTexts(columns),
    permission: requireTexts(agreementFields['permission']),
    purposes: requireTexts(agreementFields['purposes']),
    validFrom: requireI64(agreementFields['validFrom']),
    validTo: requireI64(agreementFields['validTo']),
    history: requireWord(agreementFields['history'], sharedHistories),
    masking: Object.fromEntries(agreementMasks),
    onwardSharing,
    aggregateMinGroup: aggregateMinGroup === null ? null : requireCount(aggregateMinGroup),
    termsDigest: termsDigest === null ? null : requireText(termsDigest),
    state: requireWord(agreementFields['state'], agreementStates),
    createdAt: requireI64(agreementFields['createdAt']),
    activatedAt: activatedAt === null ? null : requireI64(activatedAt),
  };
  return { kind: 'agreement', change: agreementChange, agreement: agreementRecord };
}

function readErasureBody(erasureMembers: RecordMembers): ErasureBody {
  checkMemberNames(erasureMembers, ['change', 'commitment', 'id', 'keys', 'mentions', 'reason', 'statement', 'versions']);
  const erasedVersions = requireList(erasureMembers['versions']).map(readErasedVersions);
  if (erasedVersions.some(({ type }, i) => i > 0 && compareText(erasedVersions[i - 1]!.type, type) >= 0)) {
    throw malformedError('erased types out of order');
  }
  return {
    kind: 'erasure',
    change: requireWord(erasureMembers['change'], ['intended', 'completed']),
    id: requireText(erasureMembers['id']),
    commitment: requireText(erasureMembers['commitment']),
    reason: requireText(erasureMembers['reason']),
    keys: requireTexts(erasureMembers['keys']),
    versions: erasedVersions,
    mentions: readRisingPositions(erasureMembers['mentions']),
    statement: requireText(erasureMembers['statement']),
  };
}

function readErasedVersions(erasedValue: unknown): ErasedVersions {
  const erasedMembers = requireObject(erasedValue);
  checkMemberNames(erasedMembers, ['paths', 'positions', 'type']);
  const erasedPaths = requireList(erasedMembers['paths']).map((path) => (path === null ? null : requireText(path)));
  const isPathOutOfOrder = (path: string | null, i: number): boolean =>
    i > 0 && (path === null || compareText(erasedPaths[i - 1] ?? '', path) >= 0);
  if (erasedPaths.some(isPathOutOfOrder)) throw malformedError('erased paths out of order');
  return {
    type: requireText(erasedMembers['type']),
    paths: erasedPaths,
    positions: readRisingPositions(erasedMembers['positions']),
  };
}

function readRisingPositions(value: unknown): readonly number[] {
  const risingPositions = requireList(value).map(requireCount);
  if (risingPositions.some((position, i) => i > 0 && risingPositions[i - 1]! >= position))
    throw malformedError('positions out of order');
  return risingPositions;
}

function readRetentionBody(retentionMembers: RecordMembers): RetentionBody {
  checkMemberNames(retentionMembers, ['change', 'id', 'position', 'type', 'until']);
  return {
    kind: 'retention',
    change: requireWord(retentionMembers['change'], ['scheduled', 'held', 'released']),
    id: requireText(retentionMembers['id']),
    type: requireText(retentionMembers['type']),
    position: requireCount(retentionMembers['position']),
    until: requireI64(retentionMembers['until']),
  };
}

function readRedactionBody(redactionMembers: RecordMembers): RedactionBody {
  checkMemberNames(redactionMembers, ['rows', 'through']);
  return { kind: 'redaction', through: requireCount(redactionMembers['through']), rows: requireCount(redactionMembers['rows']) };
}

/** Exactly these members. */
function checkMemberNames(recordMembers: RecordMembers, expectedNames: readonly string[]): void {
  const memberNames = Object.keys(recordMembers);
  if (memberNames.length !== expectedNames.length || !expectedNames.every((name) => Object.hasOwn(recordMembers, name))) {
    throw malformedError('a record of other members');
  }
}

function requireObject(recordValue: unknown): RecordMembers {
  if (typeof recordValue !== 'object' || recordValue === null || Array.isArray(recordValue))
    throw malformedError('a record that is no object');
  return recordValue as RecordMembers;
}

function requireList(recordValue: unknown): readonly unknown[] {
  if (!Array.isArray(recordValue)) throw malformedError('a record with another type of member');
  return recordValue;
}

function requireText(recordValue: unknown): string {
  if (typeof recordValue !== 'string') throw malformedError('a record with another type of member');
  return recordValue;
}

function requireTexts(recordValue: unknown): readonly string[] {
  return requireList(recordValue).map(requireText);
}

function requireWord<T extends string>(recordValue: unknown, knownWords: readonly T[]): T {
  const knownValue = knownWords.find((candidateWord) => candidateWord === recordValue);
  if (knownValue === undefined) throw malformedError('a record with an unknown word');
  return knownValue;
}

function requireCount(recordValue: unknown): number {
  if (!Number.isSafeInteger(recordValue) || (recordValue as number) < 0)
    throw malformedError('a record with a number that counts nothing');
  return recordValue as number;
}

function requireI64(recordValue: unknown): bigint {
  const i64Text = requireText(recordValue);
  const i64Number = /^(0|-?[1-9]\d{0,18})$/.test(i64Text) ? BigInt(i64Text) : null;
  if (i64Number === null || i64Number > I64_MAX || i64Number < I64_MIN)
    throw malformedError('a record with a number out of range');
  return i64Number;
}
