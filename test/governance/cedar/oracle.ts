/**
 * The engine's own decision about one row, cell or thing, turned to deny where its diagnostics name an erring forbid.
 * Nothing of the compiler is used here, only what loads the engine.
 */
import type { CedarValueJson, EntityJson, EntityUidJson } from '@cedar-policy/cedar-wasm/nodejs';
import { cedar } from '../../../src/governance/authorization/cedar/engine.ts';
import type { Asker } from '../../../src/governance/authorization/cedar/entities.ts';
import type { Row } from './generator.ts';

const uid = (type: string, id: string): EntityUidJson => ({ type, id });

function datetime(nanoseconds: bigint): CedarValueJson {
  let ms = nanoseconds / 1_000_000n;
  if (nanoseconds % 1_000_000n < 0n) ms -= 1n;
  const epoch = { __extn: { fn: 'datetime', arg: '1970-01-01' } };
  return { __extn: { fn: 'offset', args: [epoch, { __extn: { fn: 'duration', arg: `${ms}ms` } }] } };
}

/** Itself last. */
function upTo(name: string, separator: string): string[] {
  const segments = name.split(separator);
  return segments.map((_, i) => segments.slice(0, i + 1).join(separator));
}

export interface OracleAnswer {
  readonly allowed: boolean;
  readonly reasons: readonly string[];
  readonly errors: readonly string[];
}

export interface Subject {
  readonly type: string;
  readonly id: string;
  readonly attributes: Row;
  readonly parents: readonly EntityUidJson[];
}

let sets = 0;

export class Oracle {
  readonly #name = `set${sets++ % 4}`;
  readonly #forbids: ReadonlySet<string>;

  readonly #texts: string;

  constructor(policies: Readonly<Record<string, string>>) {
    this.#texts = Object.values(policies).join('\n');
    this.#forbids = new Set(Object.keys(policies).filter((id) => /\bforbid\(/.test(policies[id]!)));
    const answer = cedar().preparsePolicySet(this.#name, { staticPolicies: policies });
    if (answer.type === 'failure') throw new Error(JSON.stringify(answer.errors));
  }

  decide(asker: Asker, action: string, subject: Subject, now: bigint): OracleAnswer {
    const attributes: Record<string, CedarValueJson> = {};
    for (const [name, given] of Object.entries(asker.attributes)) {
      if (typeof given !== 'number' || Number.isInteger(given)) attributes[name] = given;
    }
    const { purpose, path } = asker;
    const context: Record<string, CedarValueJson> = { door: asker.door, branch: asker.branch, now: datetime(now) };
    if (purpose !== null) context['purpose'] = { __entity: { type: 'Purpose', id: purpose } };
    if (path !== null) context['org'] = { __entity: { type: 'Org', id: path } };
    if (asker.breakGlass !== null) context['break_glass'] = asker.breakGlass;
    if (asker.accessScopeRef !== null) context['access_scope_ref'] = asker.accessScopeRef;
    if (asker.clientIp !== null) context['client_ip'] = asker.clientIp;
    const principal = uid(asker.attributes['agent'] === true ? 'Agent' : 'User', asker.principal);
    const resource = uid(subject.type, subject.id);
    const cells: Record<string, CedarValueJson> = {};
    for (const [name, cell] of Object.entries(subject.attributes)) {
      // What no policy names costs the engine most of its time.
      if (!this.#texts.includes(name)) continue;
      // There, for `has`; what reads it asks the engine for another name.
      if (name === 'score' && cell !== undefined) cells[name] = {};
      else if (typeof cell === 'bigint') cells[name] = datetime(cell);
      else if (cell !== undefined) cells[name] = cell;
    }
    const own = path === null ? [] : upTo(path, '/');
    const above = [...asker.roles.map((role) => uid('Role', role)), ...own.map((org) => uid('Org', org))];
    const entities: EntityJson[] = [
      { uid: principal, attrs: attributes, parents: above },
      { uid: resource, attrs: cells, parents: [...subject.parents] },
    ];
    if (path !== null)
      entities.push({ uid: uid('Org', path), attrs: {}, parents: own.slice(0, -1).map((org) => uid('Org', org)) });
    if (purpose !== null) {
      const parents = upTo(purpose, ':').slice(0, -1);
      entities.push({ uid: uid('Purpose', purpose), attrs: {}, parents: parents.map((name) => uid('Purpose', name)) });
    }
    const answer = cedar().statefulIsAuthorized({
      principal,
      action: uid('Action', action),
      resource,
      context,
      preparsedPolicySetId: this.#name,
      entities,
    });
    if (answer.type === 'failure') throw new Error(JSON.stringify(answer.errors));
    const { decision, diagnostics } = answer.response;
    const errors = diagnostics.errors.map(({ policyId }) => policyId);
    const erring = errors.filter((id) => this.#forbids.has(id));
    return { allowed: decision === 'allow' && erring.length === 0, reasons: [...diagnostics.reason, ...erring], errors };
  }
}

/** A row as the engine is told of it. */
export function rowSubject(type: string, row: Row): Subject {
  // Entity types are identifiers; a type that is none can't be named by `is`.
  return {
    type: type.replaceAll(' ', ''),
    id: String(row['_pk']),
    attributes: { ...row, type },
    parents: [...parentsOf(type, row), uid('Kind', 'row')],
  };
}

export function cellSubject(type: string, column: string, row: Row): Subject {
  return { type: 'Column', id: `${type}.${column}`, attributes: { ...row, type }, parents: parentsOf(type, row) };
}

function parentsOf(type: string, row: Row): EntityUidJson[] {
  const path = row['namespace_path'];
  const orgs = typeof path === 'string' ? upTo(path, '/').map((org) => uid('Org', org)) : [];
  return [uid('Type', type), ...orgs];
}

export function thingSubject(type: string, id: string, owner: string | null): Subject {
  return { type, id, attributes: {}, parents: owner === null ? [] : upTo(owner, '/').map((org) => uid('Org', org)) };
}
