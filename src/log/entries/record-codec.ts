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

export function recordText(body: RecordBody): string {
  switch (body.kind) {
    case 'policy':
      return canonicalJson({ change: body.change, id: body.id, text: body.text, digest: body.digest });
    case 'tenant':
      return canonicalJson({ change: body.change, manner: body.manner, tenant: withTexts(body.tenant) });
    case 'agreement':
      return canonicalJson({ change: body.change, agreement: withTexts(body.agreement) });
    case 'erasure': {
      const { kind: _, ...members } = body;
      return canonicalJson(members as unknown as Json);
    }
    case 'redaction':
      return canonicalJson({ through: body.through, rows: body.rows });
    case 'retention': {
      const { kind: _, ...members } = body;
      return canonicalJson(withTexts(members));
    }
  }
}

/** Reads text that may be anything: REL_STORAGE for what `recordText` would not have written. */
export function recordOf(kind: RecordBody['kind'], text: string): RecordBody {
  const members = objectOf(parseCanonical(text));
  switch (kind) {
    case 'policy':
      return policyOf(members);
    case 'tenant':
      return tenantBodyOf(members);
    case 'agreement':
      return agreementBodyOf(members);
    case 'erasure':
      return erasureOf(members);
    case 'retention':
      return retentionOf(members);
    case 'redaction':
      return redactionOf(members);
  }
}

type Members = Readonly<Record<string, unknown>>;

/** 64-bit integers as texts; everything else is JSON as it stands. */
function withTexts(record: TenantRecord | AgreementRecord | Omit<RetentionBody, 'kind'>): Json {
  const members = Object.entries(record).map(([name, value]): [string, Json] => [
    name,
    typeof value === 'bigint' ? String(value) : (value as Json),
  ]);
  return Object.fromEntries(members);
}

function parseCanonical(text: string): unknown {
  let value: Json;
  let spelled: string;
  try {
    value = JSON.parse(text) as Json;
    if (!isShallow(value, recordDepth)) throw malformedError('a record nested too deep');
    spelled = canonicalJson(value);
  } catch {
    throw malformedError('a record that is no proper JSON');
  }
  if (spelled !== text) throw malformedError('a record in another spelling');
  return value;
}

/** A search configuration may be as deep as any JSON, inside its tenant, inside its record. */
const recordDepth = limits.jsonDepth + 3;

/** True when arrays and objects lie in each other at most `depth` deep. */
export function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((member) => isShallow(member, depth - 1));
}

function policyOf(members: Members): PolicyBody {
  checkNames(members, ['change', 'digest', 'id', 'text']);
  return {
    kind: 'policy',
    change: oneOf(members['change'], ['installed', 'deleted']),
    id: textOf(members['id']),
    text: textOf(members['text']),
    digest: textOf(members['digest']),
  };
}

const tenantChanges = ['created', 'changed', 'suspended', 'reactivated', 'deleted', 'purged'] as const;
const manners = ['soft', 'purge', 'tombstone'] as const;

function tenantBodyOf(members: Members): TenantBody {
  checkNames(members, ['change', 'manner', 'tenant']);
  return {
    kind: 'tenant',
    change: oneOf(members['change'], tenantChanges),
    manner: members['manner'] === null ? null : oneOf(members['manner'], manners),
    tenant: tenantOf(objectOf(members['tenant'])),
  };
}

function tenantOf(members: Members): TenantRecord {
  checkNames(members, ['changedAt', 'createdAt', 'id', 'members', 'name', 'quota', 'search', 'state', 'tier']);
  const listed = listOf(members['members']).map((member) => {
    const { principal, role, ...more } = objectOf(member);
    checkNames(more, []);
    return { principal: textOf(principal), role: textOf(role) };
  });
  if (listed.some(({ principal }, i) => i > 0 && compareText(listed[i - 1]!.principal, principal) >= 0)) {
    throw malformedError('members out of order');
  }
  return {
    id: textOf(members['id']),
    name: textOf(members['name']),
    tier: textOf(members['tier']),
    state: oneOf(members['state'], ['active', 'suspended', 'deleted']),
    quota: quotaOf(objectOf(members['quota'])),
    search: objectOf(members['search']) as TenantRecord['search'],
    members: listed,
    createdAt: i64Of(members['createdAt']),
    changedAt: i64Of(members['changedAt']),
  };
}

function quotaOf(members: Members): TenantQuota {
  checkNames(members, quotaNames);
  return Object.fromEntries(quotaNames.map((name) => [name, members[name] === null ? null : countOf(members[name])])) as Record<
    keyof TenantQuota,
    number | null
  >;
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

function agreementBodyOf(members: Members): AgreementBody {
  checkNames(members, ['agreement', 'change']);
  const change = oneOf(members['change'], agreementChanges);
  const record = objectOf(members['agreement']);
  checkNames(record, agreementMembers);
  const { activatedAt, aggregateMinGroup, columns, onwardSharing, termsDigest, where } = record;
  if (typeof onwardSharing !== 'boolean') throw malformedError('a record with another type of member');
  const masking = Object.entries(objectOf(record['masking'])).map(([name, kind]): [string, MaskKind] => [
    name,
    oneOf(kind, maskKinds),
  ]);
  const agreement: AgreementRecord = {
    id: textOf(record['id']),
    assigner: textOf(record['assigner']),
    assignee: textOf(record['assignee']),
    types: textsOf(record['types']),
    where: where === null ? null : textOf(where),
    columns: columns === null ? null : textsOf(columns),
    permission: textsOf(record['permission']),
    purposes: textsOf(record['purposes']),
    validFrom: i64Of(record['validFrom']),
    validTo: i64Of(record['validTo']),
    history: oneOf(record['history'], sharedHistories),
    masking: Object.fromEntries(masking),
    onwardSharing,
    aggregateMinGroup: aggregateMinGroup === null ? null : countOf(aggregateMinGroup),
    termsDigest: termsDigest === null ? null : textOf(termsDigest),
    state: oneOf(record['state'], agreementStates),
    createdAt: i64Of(record['createdAt']),
    activatedAt: activatedAt === null ? null : i64Of(activatedAt),
  };
  return { kind: 'agreement', change, agreement };
}

function erasureOf(members: Members): ErasureBody {
  checkNames(members, ['change', 'commitment', 'id', 'keys', 'mentions', 'reason', 'statement', 'versions']);
  const versions = listOf(members['versions']).map(erasedOf);
  if (versions.some(({ type }, i) => i > 0 && compareText(versions[i - 1]!.type, type) >= 0)) {
    throw malformedError('erased types out of order');
  }
  return {
    kind: 'erasure',
    change: oneOf(members['change'], ['intended', 'completed']),
    id: textOf(members['id']),
    commitment: textOf(members['commitment']),
    reason: textOf(members['reason']),
    keys: textsOf(members['keys']),
    versions,
    mentions: risingOf(members['mentions']),
    statement: textOf(members['statement']),
  };
}

function erasedOf(value: unknown): ErasedVersions {
  const members = objectOf(value);
  checkNames(members, ['paths', 'positions', 'type']);
  const paths = listOf(members['paths']).map((path) => (path === null ? null : textOf(path)));
  const falls = (path: string | null, i: number): boolean =>
    i > 0 && (path === null || compareText(paths[i - 1] ?? '', path) >= 0);
  if (paths.some(falls)) throw malformedError('erased paths out of order');
  return { type: textOf(members['type']), paths, positions: risingOf(members['positions']) };
}

function risingOf(value: unknown): readonly number[] {
  const positions = listOf(value).map(countOf);
  if (positions.some((position, i) => i > 0 && positions[i - 1]! >= position)) throw malformedError('positions out of order');
  return positions;
}

function retentionOf(members: Members): RetentionBody {
  checkNames(members, ['change', 'id', 'position', 'type', 'until']);
  return {
    kind: 'retention',
    change: oneOf(members['change'], ['scheduled', 'held', 'released']),
    id: textOf(members['id']),
    type: textOf(members['type']),
    position: countOf(members['position']),
    until: i64Of(members['until']),
  };
}

function redactionOf(members: Members): RedactionBody {
  checkNames(members, ['rows', 'through']);
  return { kind: 'redaction', through: countOf(members['through']), rows: countOf(members['rows']) };
}

/** Exactly these members. */
function checkNames(members: Members, names: readonly string[]): void {
  const given = Object.keys(members);
  if (given.length !== names.length || !names.every((name) => Object.hasOwn(members, name))) {
    throw malformedError('a record of other members');
  }
}

function objectOf(value: unknown): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformedError('a record that is no object');
  return value as Members;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw malformedError('a record with another type of member');
  return value;
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw malformedError('a record with another type of member');
  return value;
}

function textsOf(value: unknown): readonly string[] {
  return listOf(value).map(textOf);
}

function oneOf<T extends string>(value: unknown, known: readonly T[]): T {
  const knownValue = known.find((each) => each === value);
  if (knownValue === undefined) throw malformedError('a record with an unknown word');
  return knownValue;
}

function countOf(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw malformedError('a record with a number that counts nothing');
  return value as number;
}

function i64Of(value: unknown): bigint {
  const text = textOf(value);
  const number = /^(0|-?[1-9]\d{0,18})$/.test(text) ? BigInt(text) : null;
  if (number === null || number > I64_MAX || number < I64_MIN) throw malformedError('a record with a number out of range');
  return number;
}
