/**
 * One row of the rows of a cluster: each field by the first rule that finds a value for it, in the order in which rules were registered;
 * a field that no rule is about, where all rows that have it say the same.
 */
import { ServiceError } from '../../../../errors.ts';
import { type EnrichRule, enrichRules } from '../../../../governance/rules/visible-rules.ts';
import { canonicalJson, type Json } from '../../../../log/values/canonical-json.ts';
import { compareText } from '../../../../log/values/value.ts';
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { DomainCall } from '../domain-function.ts';
import type { Cluster, Member } from './linkage.ts';

interface FieldValue {
  readonly member: Member;
  readonly value: Json;
  /** The row's version. */
  readonly systemFrom: bigint | null;
}

/** The value of a field, the row that it is of, and the rule that chose it. */
export interface FusedField {
  readonly value: Json;
  readonly source: { readonly id: string; readonly type: string };
  readonly rule: string | null;
}

/** REL_UNPROCESSABLE where no rule is about a type of the cluster. */
export function* fusedRow(call: DomainCall, { members }: Cluster): Steps<Readonly<Record<string, FusedField>>> {
  const { snapshot } = call.execution;
  const types = [...new Set(members.map(({ type }) => type))].sort();
  const rules = types.flatMap((type) => enrichRules(snapshot, type).map((rule) => ({ ...rule, type })));
  if (rules.length === 0) {
    const detail = `no rule of the kind enrich is registered for ${types.join(' or ')}: POST /rules registers one`;
    throw new ServiceError('REL_UNPROCESSABLE', detail);
  }
  const order = new Map(snapshot.rules().map(({ id }, i) => [id, i]));
  rules.sort((a, b) => order.get(a.id)! - order.get(b.id)!);
  const fields = new Map<string, FieldValue[]>();
  for (const type of types) yield* readFields(call, type, members, fields);
  const fused: Record<string, FusedField> = Object.create(null);
  for (const rule of rules) {
    if (rule.field in fused) continue;
    const values = (fields.get(rule.field) ?? []).filter(({ member }) => member.type === rule.type);
    const chosen = choose(rule, values, call);
    if (chosen !== null) fused[rule.field] = fieldOf(chosen, rule.name);
  }
  for (const [field, values] of fields) {
    if (field in fused || rules.some((rule) => rule.field === field)) continue;
    if (new Set(values.map(({ value }) => canonicalJson(value))).size === 1) fused[field] = fieldOf(byKey(values)[0]!, null);
  }
  return fused;
}

function fieldOf({ member, value }: FieldValue, rule: string | null): FusedField {
  return { value, source: { id: member.key, type: member.type }, rule };
}

function* readFields(call: DomainCall, type: string, members: readonly Member[], fields: Map<string, FieldValue[]>): Steps<void> {
  const own = new Map(members.flatMap((member) => (member.type === type ? [[member.key, member] as const] : [])));
  const properties = Object.entries(call.execution.snapshot.catalog.type(type)?.properties ?? {}).flatMap(
    ([name, { type: of }]) => (of === 'vector' || name.startsWith('_') ? [] : [name]),
  );
  yield* call.rowsOf(
    type,
    properties,
    (batch) => {
      for (let row = 0; row < batch.count; row++) {
        const member = own.get(batch.nodeId(row) ?? '');
        if (member === undefined) continue;
        for (const name of properties) {
          const value = batch.json(name, row);
          if (value === null) continue;
          const known = fields.get(name);
          const fieldValue = { member, value, systemFrom: batch.systemFrom(row) };
          if (known === undefined) fields.set(name, [fieldValue]);
          else known.push(fieldValue);
        }
      }
    },
    { column: '_pk', texts: [...own.keys()] },
  );
}

function choose({ keep }: EnrichRule, values: readonly FieldValue[], call: DomainCall): FieldValue | null {
  const [first, ...rest] = byKey(values);
  if (first === undefined) return null;
  const best = (isBetter: (a: FieldValue, b: FieldValue) => boolean): FieldValue =>
    rest.reduce((chosen, each) => (isBetter(each, chosen) ? each : chosen), first);
  switch (keep) {
    case 'newest':
      return best((a, b) => (a.systemFrom ?? 0n) > (b.systemFrom ?? 0n));
    case 'longest':
      return best((a, b) => lengthOf(a.value) > lengthOf(b.value));
    case 'most_frequent': {
      const counts = new Map<string, number>();
      for (const { value } of values) counts.set(canonicalJson(value), (counts.get(canonicalJson(value)) ?? 0) + 1);
      return best((a, b) => counts.get(canonicalJson(a.value))! > counts.get(canonicalJson(b.value))!);
    }
    default:
      return [first, ...rest].find((each) => sourceOf(each, call) === keep.source) ?? null;
  }
}

/** Ties go to the smaller key. */
function byKey(values: readonly FieldValue[]): FieldValue[] {
  return values.toSorted((a, b) => compareText(a.member.key, b.member.key));
}

function lengthOf(value: Json): number {
  return typeof value === 'string' ? value.length : canonicalJson(value).length;
}

/** As the row's writer named it (`X-Service-Source`, `source` of an ingest). */
function sourceOf({ member, systemFrom }: FieldValue, { execution }: DomainCall): string | null {
  return systemFrom === null ? null : (execution.snapshot.rows.provenanceOf(member.type, systemFrom)?.source ?? null);
}
