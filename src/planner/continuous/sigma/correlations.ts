/**
 * Correlations over a stream of matches: counts of events, of different values and of rules, in windows of time and groups of
 * equal fields. What a match raises depends on the matches of its group within twice the timespan before it, and on nothing
 * older, so that a restart finds the state again in the rows.
 *
 * - A window ends at an event and holds what lies less than `timespan` before it, wherever it begins.
 * - A match is raised where a window fits and the one of the event before it, within the timespan, does not.
 * - A row without one of the fields of `group-by` belongs to no group.
 */
import { countMax } from './correlation-rule.ts';
import { Refusal } from './rule-refusal.ts';
import type { SigmaCorrelation, SigmaDocument } from './sigma-rule.ts';

/** One match of a rule, or of a correlation that another one refers to. */
export interface MatchEvent {
  /** Ordinal of the document among those that were given. */
  readonly document: number;
  /** When the event happened, ns. */
  readonly instant: bigint;
  /** The row, for who reads the result. */
  readonly row: number;
  /** The text of one of its fields; null where it has none. */
  readonly valueOf: (field: string) => string | null;
}

/** Groups of one correlation: the one that has been quiet longest makes room. */
const correlationGroupsMax = 100_000;

interface GroupEvent {
  readonly instant: bigint;
  readonly document: number;
  readonly value: string;
}

/** In order of their instants. */
type CorrelationGroup = GroupEvent[];

/** Correlations beside the documents that they refer to. */
export interface LinkedCorrelations {
  /** Ordinals of correlations, each behind those that it refers to. */
  readonly order: readonly number[];
  /** By correlation: ordinals of the documents that it refers to. */
  readonly sources: ReadonlyMap<number, readonly number[]>;
  /** Documents that only serve a correlation. */
  readonly silent: ReadonlySet<number>;
  /** By ordinal: why a correlation is refused. */
  readonly refused: ReadonlyMap<number, Refusal>;
}

/** Resolves references by id and by name. A document is null where it was refused. */
export function linkCorrelations(documents: readonly (SigmaDocument | null)[]): LinkedCorrelations {
  const ordinalByReference = new Map<string, number>();
  documents.forEach((document, ordinal) => {
    for (const ruleReference of [document?.id, document?.name]) if (ruleReference) ordinalByReference.set(ruleReference, ordinal);
  });
  const sourceOrdinals = new Map<number, readonly number[]>();
  const refusedCorrelations = new Map<number, Refusal>();
  const correlationOrder: number[] = [];
  const visitStates = new Map<number, 'open' | 'done'>();
  const visitCorrelation = (ordinal: number): boolean => {
    const document = documents[ordinal];
    if (document?.kind !== 'correlation') return document !== undefined && document !== null;
    if (visitStates.get(ordinal) === 'done') return !refusedCorrelations.has(ordinal);
    if (visitStates.get(ordinal) === 'open') return false;
    visitStates.set(ordinal, 'open');
    const dueEvents: number[] = [];
    for (const reference of document.rules) {
      const referredRule = ordinalByReference.get(reference);
      if (referredRule === undefined)
        refusedCorrelations.set(ordinal, new Refusal('correlation.rules', `there is no rule ${JSON.stringify(reference)}`));
      else if (!visitCorrelation(referredRule)) {
        refusedCorrelations.set(
          ordinal,
          new Refusal('correlation.rules', `${JSON.stringify(reference)} refers back to this correlation, or is refused`),
        );
      } else dueEvents.push(referredRule);
    }
    visitStates.set(ordinal, 'done');
    if (refusedCorrelations.has(ordinal)) return false;
    sourceOrdinals.set(ordinal, dueEvents);
    correlationOrder.push(ordinal);
    return true;
  };
  documents.forEach((_, ordinal) => visitCorrelation(ordinal));
  const silentRules = new Set<number>();
  for (const ordinal of correlationOrder) {
    const correlation = documents[ordinal] as SigmaCorrelation;
    if (!correlation.generate) for (const source of sourceOrdinals.get(ordinal)!) silentRules.add(source);
  }
  return { order: correlationOrder, sources: sourceOrdinals, silent: silentRules, refused: refusedCorrelations };
}

export class Correlator {
  readonly #runningCorrelations: readonly RunningCorrelation[];

  constructor(sigmaDocuments: readonly (SigmaDocument | null)[], linkedCorrelations: LinkedCorrelations) {
    this.#runningCorrelations = linkedCorrelations.order.map(
      (ordinal) =>
        new RunningCorrelation(
          ordinal,
          sigmaDocuments[ordinal] as SigmaCorrelation,
          linkedCorrelations.sources.get(ordinal)!,
          sigmaDocuments,
        ),
    );
  }

  /** How far back the state reaches, ns: twice the longest timespan, through all that refer to each other. */
  get reachNs(): bigint {
    return this.#runningCorrelations.reduce((sum, { timespanNs }) => sum + 2n * timespanNs, 0n);
  }

  /** Takes one match and returns those of correlations that it completes, in order. */
  observe(matchEvent: MatchEvent): readonly MatchEvent[] {
    const correlatedEvents = [matchEvent];
    for (const correlation of this.#runningCorrelations) {
      // A correlation sees those that stand before it, too.
      for (let i = 0, eventCount = correlatedEvents.length; i < eventCount; i++) {
        const event = correlation.observe(correlatedEvents[i]!);
        if (event !== null) correlatedEvents.push(event);
      }
    }
    return correlatedEvents.slice(1);
  }
}

class RunningCorrelation {
  readonly #correlationOrdinal: number;
  readonly #sigmaCorrelation: SigmaCorrelation;
  readonly #correlatedRules: readonly number[];
  /** By source, the field behind each of `group-by`. */
  readonly #groupByFields: ReadonlyMap<number, readonly string[]>;
  readonly #groupEventsMax: number;
  /** In order of their last event. */
  readonly #correlationGroups = new Map<string, CorrelationGroup>();

  constructor(
    ordinal: number,
    correlation: SigmaCorrelation,
    correlatedRules: readonly number[],
    sigmaDocuments: readonly (SigmaDocument | null)[],
  ) {
    this.#correlationOrdinal = ordinal;
    this.#sigmaCorrelation = correlation;
    this.#correlatedRules = correlatedRules;
    this.#groupByFields = new Map(
      correlatedRules.map((source) => {
        const document = sigmaDocuments[source]!;
        const groupByFields = correlation.groupBy.map((name) => {
          const fieldAlias = correlation.aliases.get(name);
          return fieldAlias?.get(document.name ?? '') ?? fieldAlias?.get(document.id ?? '') ?? name;
        });
        return [source, groupByFields] as const;
      }),
    );
    const largestBound = Math.max(0, ...correlation.bounds.map(({ value }) => value));
    this.#groupEventsMax = correlation.type === 'event_count' ? 2 * largestBound + 4 : countMax;
  }

  get timespanNs(): bigint {
    return this.#sigmaCorrelation.timespanNs;
  }

  observe(matchEvent: MatchEvent): MatchEvent | null {
    const fields = this.#groupByFields.get(matchEvent.document);
    if (fields === undefined) return null;
    const groupValues = fields.map((field) => matchEvent.valueOf(field));
    if (groupValues.includes(null)) return null;
    const { field } = this.#sigmaCorrelation;
    const countedValue = field === null ? '' : matchEvent.valueOf(field);
    if (countedValue === null) return null;
    const eventGroup = this.#touchGroup(JSON.stringify(groupValues));
    const insertedAt = insertCorrelated(eventGroup, {
      instant: matchEvent.instant,
      document: matchEvent.document,
      value: countedValue,
    });
    const isCompleted = this.#completesTimespan(eventGroup, insertedAt);
    const { timespanNs } = this.#sigmaCorrelation;
    const newestInstant = eventGroup.at(-1)!.instant;
    let staleEventCount = Math.max(0, eventGroup.length - this.#groupEventsMax);
    while (eventGroup[staleEventCount]!.instant <= newestInstant - 2n * timespanNs) staleEventCount++;
    eventGroup.splice(0, staleEventCount);
    return isCompleted
      ? { document: this.#correlationOrdinal, instant: matchEvent.instant, row: matchEvent.row, valueOf: matchEvent.valueOf }
      : null;
  }

  #touchGroup(groupValuesKey: string): CorrelationGroup {
    const correlationGroup = this.#correlationGroups.get(groupValuesKey) ?? [];
    this.#correlationGroups.delete(groupValuesKey);
    this.#correlationGroups.set(groupValuesKey, correlationGroup);
    if (this.#correlationGroups.size > correlationGroupsMax)
      this.#correlationGroups.delete(this.#correlationGroups.keys().next().value!);
    return correlationGroup;
  }

  /** Looks at the windows that the event lies in: those that end at it, and at later events that came before it. */
  #completesTimespan(correlationGroup: CorrelationGroup, eventOrdinal: number): boolean {
    const { timespanNs } = this.#sigmaCorrelation;
    const { instant } = correlationGroup[eventOrdinal]!;
    const groupWithoutEvent = correlationGroup.toSpliced(eventOrdinal, 1);
    const fitsTimespan = (timespanEvents: CorrelationGroup, end: number): boolean => {
      let timespanBegin = end;
      while (timespanBegin > 0 && timespanEvents[timespanBegin - 1]!.instant > timespanEvents[end]!.instant - timespanNs)
        timespanBegin--;
      return this.#holdsBounds(timespanEvents, timespanBegin, end + 1);
    };
    let hasBegunTimespan = false;
    for (
      let timespanEnd = eventOrdinal;
      timespanEnd < correlationGroup.length && correlationGroup[timespanEnd]!.instant - timespanNs < instant;
      timespanEnd++
    ) {
      // A window that fitted without this event belongs to an episode that was raised then.
      if (timespanEnd > eventOrdinal && fitsTimespan(groupWithoutEvent, timespanEnd - 1)) return false;
      if (hasBegunTimespan || !fitsTimespan(correlationGroup, timespanEnd)) continue;
      const hasPreviousEvent =
        timespanEnd > 0 && correlationGroup[timespanEnd - 1]!.instant > correlationGroup[timespanEnd]!.instant - timespanNs;
      hasBegunTimespan = !hasPreviousEvent || !fitsTimespan(correlationGroup, timespanEnd - 1);
    }
    return hasBegunTimespan;
  }

  #holdsBounds(timespanEvents: CorrelationGroup, firstEvent: number, endEvent: number): boolean {
    const { type, bounds } = this.#sigmaCorrelation;
    if (type === 'temporal_ordered') return this.#isInRuleOrder(timespanEvents, firstEvent, endEvent);
    const correlatedCount =
      type === 'event_count'
        ? endEvent - firstEvent
        : new Set(timespanEvents.slice(firstEvent, endEvent).map((each) => (type === 'value_count' ? each.value : each.document)))
            .size;
    if (bounds.length === 0) return correlatedCount === new Set(this.#correlatedRules).size;
    return bounds.every(({ bound, value }) => {
      switch (bound) {
        case 'gt':
          return correlatedCount > value;
        case 'gte':
          return correlatedCount >= value;
        case 'lt':
          return correlatedCount < value;
        case 'lte':
          return correlatedCount <= value;
        case 'eq':
          return correlatedCount === value;
        case 'neq':
          return correlatedCount !== value;
      }
    });
  }

  #isInRuleOrder(timespanEvents: CorrelationGroup, firstEvent: number, endEvent: number): boolean {
    let nextRule = 0;
    for (let i = firstEvent; i < endEvent && nextRule < this.#correlatedRules.length; i++)
      if (timespanEvents[i]!.document === this.#correlatedRules[nextRule]) nextRule++;
    return nextRule === this.#correlatedRules.length;
  }
}

/** Index at which the event stands afterwards: behind those of the same instant. */
function insertCorrelated(groupEvents: CorrelationGroup, correlatedEvent: GroupEvent): number {
  let eventOrdinal = groupEvents.length;
  while (eventOrdinal > 0 && groupEvents[eventOrdinal - 1]!.instant > correlatedEvent.instant) eventOrdinal--;
  groupEvents.splice(eventOrdinal, 0, correlatedEvent);
  return eventOrdinal;
}
