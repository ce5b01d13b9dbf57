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

interface FusedCandidate {
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
  const memberTypes = [...new Set(members.map(({ type }) => type))].sort();
  const fuseRules = memberTypes.flatMap((type) => enrichRules(snapshot, type).map((fuseRule) => ({ ...fuseRule, type })));
  if (fuseRules.length === 0) {
    const noRulesDetail = `no rule of the kind enrich is registered for ${memberTypes.join(' or ')}: POST /rules registers one`;
    throw new ServiceError('REL_UNPROCESSABLE', noRulesDetail);
  }
  const ruleOrder = new Map(snapshot.rules().map(({ id }, i) => [id, i]));
  fuseRules.sort((a, b) => ruleOrder.get(a.id)! - ruleOrder.get(b.id)!);
  const fieldCandidates = new Map<string, FusedCandidate[]>();
  for (const type of memberTypes) yield* readFusedFields(call, type, members, fieldCandidates);
  const fusedFields: Record<string, FusedField> = Object.create(null);
  for (const rule of fuseRules) {
    if (rule.field in fusedFields) continue;
    const ruleCandidates = (fieldCandidates.get(rule.field) ?? []).filter(({ member }) => member.type === rule.type);
    const chosenCandidate = chooseFused(rule, ruleCandidates, call);
    if (chosenCandidate !== null) fusedFields[rule.field] = fusedFieldOf(chosenCandidate, rule.name);
  }
  for (const [field, values] of fieldCandidates) {
    if (field in fusedFields || fuseRules.some((fuseRule) => fuseRule.field === field)) continue;
    if (new Set(values.map(({ value }) => canonicalJson(value))).size === 1)
      fusedFields[field] = fusedFieldOf(candidatesByKey(values)[0]!, null);
  }
  return fusedFields;
}

function fusedFieldOf({ member, value }: FusedCandidate, rule: string | null): FusedField {
  return { value, source: { id: member.key, type: member.type }, rule };
}

function* readFusedFields(
  call: DomainCall,
  type: string,
  members: readonly Member[],
  fieldCandidates: Map<string, FusedCandidate[]>,
): Steps<void> {
  const membersByKey = new Map(
    members.flatMap((fusedMember) => (fusedMember.type === type ? [[fusedMember.key, fusedMember] as const] : [])),
  );
  const fusedProperties = Object.entries(call.execution.snapshot.catalog.type(type)?.properties ?? {}).flatMap(
    ([name, { type: of }]) => (of === 'vector' || name.startsWith('_') ? [] : [name]),
  );
  yield* call.rowsOf(
    type,
    fusedProperties,
    (memberBatch) => {
      for (let memberRow = 0; memberRow < memberBatch.count; memberRow++) {
        const fusedMember = membersByKey.get(memberBatch.nodeId(memberRow) ?? '');
        if (fusedMember === undefined) continue;
        for (const name of fusedProperties) {
          const fusedValue = memberBatch.json(name, memberRow);
          if (fusedValue === null) continue;
          const knownCandidates = fieldCandidates.get(name);
          const fieldValue = { member: fusedMember, value: fusedValue, systemFrom: memberBatch.systemFrom(memberRow) };
          if (knownCandidates === undefined) fieldCandidates.set(name, [fieldValue]);
          else knownCandidates.push(fieldValue);
        }
      }
    },
    { column: '_pk', texts: [...membersByKey.keys()] },
  );
}

function chooseFused({ keep }: EnrichRule, fusedCandidates: readonly FusedCandidate[], call: DomainCall): FusedCandidate | null {
  const [firstCandidate, ...otherCandidates] = candidatesByKey(fusedCandidates);
  if (firstCandidate === undefined) return null;
  const bestCandidate = (isBetterCandidate: (a: FusedCandidate, b: FusedCandidate) => boolean): FusedCandidate =>
    otherCandidates.reduce((chosen, each) => (isBetterCandidate(each, chosen) ? each : chosen), firstCandidate);
  switch (keep) {
    case 'newest':
      return bestCandidate((a, b) => (a.systemFrom ?? 0n) > (b.systemFrom ?? 0n));
    case 'longest':
      return bestCandidate((a, b) => fusedLengthOf(a.value) > fusedLengthOf(b.value));
    case 'most_frequent': {
      const valueCounts = new Map<string, number>();
      for (const { value } of fusedCandidates)
        valueCounts.set(canonicalJson(value), (valueCounts.get(canonicalJson(value)) ?? 0) + 1);
      return bestCandidate((a, b) => valueCounts.get(canonicalJson(a.value))! > valueCounts.get(canonicalJson(b.value))!);
    }
    default:
      return (
        [firstCandidate, ...otherCandidates].find((otherCandidate) => fusedSourceOf(otherCandidate, call) === keep.source) ?? null
      );
  }
}

/** Ties go to the smaller key. */
function candidatesByKey(fusedCandidates: readonly FusedCandidate[]): FusedCandidate[] {
  return fusedCandidates.toSorted((a, b) => compareText(a.member.key, b.member.key));
}

function fusedLengthOf(fusedValue: Json): number {
  return typeof fusedValue === 'string' ? fusedValue.length : canonicalJson(fusedValue).length;
}

/** As the row's writer named it (`X-Service-Source`, `source` of an ingest). */
function fusedSourceOf({ member, systemFrom }: FusedCandidate, { execution }: DomainCall): string | null {
  return systemFrom === null ? null : (execution.snapshot.rows.provenanceOf(member.type, systemFrom)?.source ?? null);
}
